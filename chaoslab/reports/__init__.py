"""One file per format of a report; each offers `render(history, …)`, the charts offer `draw`.

Other rooms use `agreement`, `changes.formats`, `charts.over_level`, `charts.series`, `contents.headline`,
`contents.outcomes`, `explored`, `fault_check`, `fault_pages`, `frames`, `gate`, `index`, `joined`, `labelling`,
`levels`, `live`, `loaded`, `page`, `parquet`, `places`, `progress`, `replay`, `report`, `runs`, `show`, `sweeps`,
`tables`, `text`, `trials`.
"""
