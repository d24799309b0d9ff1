"""The HTTP service (`heedful serve`): the loops of a folder, for many callers at once.

It keeps a loop's promises: an event is answered once it is on the disk and learned. Needs the extra `serve`."""
