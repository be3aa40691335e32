"""The types of matplotlib and pandas that charts name. Neither is loaded before something is drawn."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.artist import Artist as Artist
    from matplotlib.axes import Axes as Axes
    from matplotlib.figure import Figure as Figure
    from pandas import DataFrame as DataFrame
    from pandas import Series as Series
else:
    Artist = Axes = Figure = DataFrame = Series = Any
