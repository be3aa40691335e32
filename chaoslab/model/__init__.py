"""The offline chat model, the endpoint that serves it in Groq's shape, and what models cost."""
