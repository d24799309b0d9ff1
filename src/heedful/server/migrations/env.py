"""What alembic runs: the migrations, on the connection that `heedful.server.database` passes in."""

from __future__ import annotations

from alembic import context

from heedful.server.database import METADATA

context.configure(connection=context.config.attributes["connection"], target_metadata=METADATA)
with context.begin_transaction():
    context.run_migrations()
