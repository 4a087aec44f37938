from .growing import GrowingAnswer as GrowingAnswer
from .text_watch import TextWatch as TextWatch
