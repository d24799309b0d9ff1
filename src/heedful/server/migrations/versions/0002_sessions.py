"""The table of who signed in with a key. A migration that has been released is never edited."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.create_table(
        "sessions",
        sa.Column("digest", sa.LargeBinary(32), primary_key=True),
        sa.Column("prefix", sa.String(11), nullable=False),
        sa.Column("ends", sa.BigInteger, nullable=False),
    )


def downgrade() -> None:
    op.drop_table("sessions")
