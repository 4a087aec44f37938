from .html import render_fragment as render_fragment, render_html as render_html
from .terminal import render_sentence as render_sentence, render_text as render_text, wants_colour as wants_colour
