"""One file per fault; the file's name is the fault's name. See `chaoslab.core.exchange.Fault` for what one must
offer."""
