"""One file per format of a report; each offers `render(history, …)`, the charts offer `draw`."""
