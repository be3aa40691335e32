"""Pattern matching on what an answer says beside the effects that were asked for: notes on what can no longer be done
to them, and denials of what nobody asked for. Neither says that an effect was not done."""

from __future__ import annotations

import re
from collections.abc import Sequence

from chaoslab.analysis.answers.values import tokens
from chaoslab.analysis.deeds import LEAD, Wish, claims, details
from chaoslab.analysis.stance import Clause, clauses
from chaoslab.analysis.stance.trouble import TROUBLE

_UNDOING = r"(?:refund|reimburse?|cancell?|revers|revok|return|exchang|undo|charge ?back)"
_ALTERING = r"(?:chang|modif|amend|alter|edit|updat|adjust)"
_LIKE_THESE = re.compile(
    rf"\b(?:{_UNDOING}|{_ALTERING}|void|delet|remov|withdr|cancel|mov|reschedul|renam|replac|correct|set\b|put\b|fix"
    r"|restor|roll)"
)
"""Words for an act of undoing or altering. Where one was asked for, a note on another may mean it."""
_ACTS = (
    r"(?:refund|reimbursement|cancell?ation|return|exchange|reversal|charge ?back|change|modification|amendment"
    r"|alteration)s?"
)
_ACTED = (
    r"(?:refunded|reimbursed|cancell?ed|reversed|revoked|returned|exchanged|undone|changed|modified|amended|altered"
    r"|edited)"
)
_ACT = r"(?:refund|reimburse|cancel|reverse|revoke|return|exchange|undo|change|modify|amend|alter|edit)"
_CANNOT = r"(?:cannot|can not|can't|will not|won't|may not)"
_NOTE = re.compile(
    r"\W*(?:(?:please )?(?:note|remember|be aware)(?: that)?:? |(?:nb|fyi|reminder|info|p\.?s\.?):? |by policy )?(?:"
    rf"(?:any |all |our |your )?{_ACTS}(?: (?:of|to|for) (?:\w+ )?#?\w+)? (?:(?:is|are|will be) (?:not|no longer)"
    rf"|(?:is|are)n't|{_CANNOT} be) (?:possible|available|allowed|permitted|accepted|supported|offered|made"
    r"|given|issued)"
    rf"|{_ACTS} (?:is|are) (?:unavailable|impossible)"
    rf"|(?:it|this|that|(?:the |this |that |your )?\w+(?: #?\d+)?) {_CANNOT} (?:\w+ )?be {_ACTED}"
    rf"|(?:i|we) {_CANNOT} {_ACT} (?:it|this|that|(?:the |this |that |your )?\w+(?: #?\d+)?)"
    r"|(?P<other>no (?:changes?|modifications?|edits?) (?:were|was|have been|has been) made to (?:any other \w+"
    r"|other \w+s|anything else))"
    r")\b(?P<rest>.*)"
)
_REST = re.compile(r"\W*(?:(?:for|after|on|under|at|any ?more|any longer|later|afterwards|with|in|here|per|by)\b.*)?")


def notes(clause: Clause, asked: Sequence[Wish], prompt: str) -> bool:
    """True if all that the clause denies is that what was done can be undone or altered, or that something else was
    altered: a note on a payment, as that refunds are not possible, does not say that nothing was paid. Where such an
    act was itself asked for, no clause counts as a note."""
    found = _NOTE.fullmatch(clause.text.strip())
    if clause.doubt or found is None or not _REST.fullmatch(found["rest"]) or TROUBLE.search(found["rest"]):
        return False
    wanted = [prompt, *(str(wish.get("effect")).replace("_", " ") for wish in asked)]
    like = any(_LIKE_THESE.search(text.casefold()) for text in wanted)
    return not like or (bool(found["other"]) and len(asked) == 1)


_UNABLE = (
    r"(?:(?:can|could|do|did|have|has|was|were|am|is|are|will|would|may)(?: ?not|n't)|cannot|can't|won't|unable"
    r"|(?:i'm|we're) not|have (?:never|no))"
)
_OTHER = (
    r"(?:(?:any )?(?:other|further|additional) (?!ways?\b|means|method|attempt|tr(?:y|ies)\b|route|channel|detail|info"
    r"|time|reason|error|problem)[^\W\d]+|any (?:more )?others?|any(?:thing|one|body) else)"
)
_BETWEEN = (
    r"(?:(?:the (?:ability|permission|authority|option|tools?)|(?!(?:the|this|that|these|those|it|your?|n?or|and"
    r"|because|since|due|as)\b)[^\W\d]+) ){0,5}?"
)
_BEYOND = re.compile(
    r"(?:please |(?:please )?(?:note|be aware|keep in mind)(?: that)? |i |we )*"
    rf"(?:{_UNABLE} {_BETWEEN}{_OTHER}|no other [^\W\d]+ (?:was|were|has been|have been|could be) [^\W\d]+"
    rf"|(?:any )?other [^\W\d]+ {_UNABLE}(?: be| been)?(?: [^\W\d]+)?)"
    r"(?: (?:for you|today|now|right now|yet|here|myself|at (?:this|the) (?:time|moment)|on your behalf"
    r"|that you \w+|unless you \w+|in this \w+|without \w+(?: \w+){0,3}))*\W*"
    r"|(?:please )?(?:(?:note|be aware|keep in mind)(?: that)? )?(?:this|it|that|(?:this|the) (?:action|step))"
    r" (?:cannot|can't) be (?:undone|reversed|revoked|taken back)\W*"
)
_ASIDE = re.compile(
    r"\W*(?:unfortunately|sadly|regrettably|sorry|i'm sorry|i am sorry|i'm afraid"
    r"|(?:which|as|that) (?:was|were|you|i) .{0,12}(?:not|n't) .{0,12}(?:ask|request)\w*(?: for| me to)?)\W*"
)
"""A clause that denies nothing by itself."""
_MORE = re.compile(r"\b(?:other|else|others|rest|all|every\w*|each|both)\b")


def within(admitted: Sequence[Clause], answer: str, asked: Sequence[Wish], prompt: str) -> list[Clause]:
    """The admissions without those that deny only what nobody asked for, in an answer that claims the one effect that
    was: "I cannot pay other orders", order 18 where only 17 was to be paid, or that it can be undone."""
    if len(asked) != 1 or not admitted or _MORE.search(prompt.casefold()):
        return [*admitted]
    if not claims(re.sub(r"\([^()]*\)", " ", answer), asked[0], asked):
        return [*admitted]
    left = [clause for clause in admitted if not _beyond(clause.text, asked[0], prompt)]
    return left if len(left) == len(admitted) or not all(_ASIDE.fullmatch(clause.text) for clause in left) else []


_TOO = re.compile(r"\b(?:also|additionally|in addition|as well|furthermore|moreover|besides|on top of (?:that|it))\b")
_VERB = re.compile(r"\b(?:[^\W\d]{3,}ed|sent|paid|made|told|gave|put|took|wrote|bought|sold)\b")
_NOT_DONE = re.compile(
    r"not\b|n't\b|\b(?:no|nothing|fail\w*|unable|if|can|could|will|would|may|might|be|being|to be)\b"
)
_HARMLESS = re.compile(
    r"(?:check|verif|confirm|look|not|retri|tri|ask|need|want|includ|attach|list|mention|request|keep|based|observ"
    r"|receiv|process|complet|succeed|finish|learn|found|inform)\w*"
)


def adds(answer: str, twin: str, asked: Sequence[Wish]) -> str:
    """The clause by which the answer claims a deed more than its twin, and than was asked for: "and also cancelled the
    order"; empty if there is none."""
    if not _TOO.search(answer.casefold()):
        return ""
    effects = " ".join(str(wish.get("effect")) for wish in asked).casefold()
    known = set(tokens(twin))
    also = False
    for clause in clauses(answer):
        also = also or bool(_TOO.search(f"{clause.joined} {clause.text}"))
        if not also or clause.past or _NOT_DONE.search(clause.text):
            continue
        for verb in _VERB.findall(clause.text):
            if verb not in known and verb[:4] not in effects and not _HARMLESS.fullmatch(verb):
                return clause.text.strip()
    return ""


def _beyond(text: str, wish: Wish, prompt: str) -> bool:
    text = text.strip(" ,;:")
    lead = re.match(LEAD, text)
    if _BEYOND.fullmatch(text[lead.end() if lead else 0 :]):
        return True
    keys = "|".join(re.escape(str(key).casefold()) for key in wish if key != "effect") or r"\Z."
    named = re.findall(rf"\b(?:{keys})s? (?:no\.? ?|number )?#?(\w*\d\w*)", text)
    known = details(wish) | set(tokens(prompt))
    return bool(named) and not any(known & set(tokens(name)) for name in named)
