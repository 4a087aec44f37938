"""Units of measurement, which exclude each other, and those that can be converted into each other."""

from __future__ import annotations

from collections.abc import Mapping

_UNITS = """
mg milligram milligrams / g gram grams / kg kilogram kilograms kilo kilos / lb lbs pound pounds / oz ounce ounces /
    tonne tonnes ton tons
mm millimetre millimetres millimeter millimeters / cm centimetre centimetres centimeter centimeters /
    m metre metres meter meters /
    km kilometre kilometres kilometer kilometers / mile miles / ft foot feet / inch inches / yard yards
ml millilitre millilitres milliliter milliliters /
    l litre litres liter liters / gallon gallons / cup cups / tablespoon tablespoons / teaspoon teaspoons
second seconds sec / minute minutes min mins / hour hours hr hrs / day days / week weeks /
    month months / year years / decade decades / century centuries
hundred / thousand / million / billion / trillion / percent
am / pm
dollar dollars / euro euros / pence cents cent / pounds pound / yen
celsius / fahrenheit
kb kilobyte kilobytes / mb megabyte megabytes / gb gigabyte gigabytes / tb terabyte terabytes
daily / weekly / monthly / yearly annually
"""
UNITS: Mapping[str, tuple[int, int]] = {
    word: (group, number)
    for group, line in enumerate(_UNITS.replace("\n    ", " ").strip().splitlines())
    for number, names in enumerate(line.split("/"))
    for word in names.split()
}
"""Quantity and number of each unit; different units of the same quantity contradict each other."""

_SIZES: Mapping[str, Mapping[str, float]] = {
    "mass": {"mg": 1, "g": 1e3, "kg": 1e6},
    "length": {"mm": 1, "cm": 10, "m": 1e3, "km": 1e6},
    "volume": {"ml": 1, "l": 1e3},
    "time": {"second": 1, "minute": 60, "hour": 3600, "day": 86400, "week": 604800},
    "months": {"month": 1, "year": 12, "decade": 120, "century": 1200},
}
SIZES: Mapping[str, tuple[str, float]] = {
    word: (quantity, size)
    for quantity, sizes in _SIZES.items()
    for name, size in sizes.items()
    for word, unit in UNITS.items()
    if unit == UNITS[name]
}
"""Quantity and size of units that can be converted into each other."""
