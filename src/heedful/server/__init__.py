"""The HTTP service: loops for many callers at once (`heedful serve`).

What a loop promises holds through it: an answer comes once the event is on the disk and learned. Needs the extra
`serve`.
"""
