"""One file per format of a report; each offers `render(history, …)`, the charts offer `draw`.

Other rooms use `changes`, `charts.series`, `charts.sweep`, `contents.headline`, `contents.outcomes`,
`explored`, `fault_check`, `fault_pages`, `frames`, `gate`, `levels`, `loaded`, `page`,
`places`, `progress`, `replay`, `report`, `runs`, `show`, `sweeps`, `text`, `trials`.
"""
