"""The offline chat model, its endpoint in Groq's format, and the prices of models.

Other rooms use `app`, `endpoint`, `offline`, `prices`, `recorded`, `script`.
"""
