"""Links that show a ranking, and ask nothing. A migration that has been released is never edited."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    op.add_column("links", sa.Column("shows", sa.Boolean, nullable=False, server_default="0"))


def downgrade() -> None:
    op.drop_column("links", "shows")
