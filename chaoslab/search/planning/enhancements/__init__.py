"""The plug-ins that fill a planned experiment in, each a class: `of(design, known)` yields a field, its value and
the evidence. A field that is stated stays as it is; of `params` and `limits`, the names that are not stated are
filled in."""

FAMILIES = ("own",)
