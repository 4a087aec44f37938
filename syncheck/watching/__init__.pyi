from .text_watch import TextWatch as TextWatch
