"""The table of links that let people answer a study. A migration that has been released is never edited."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.create_table(
        "links",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("handle", sa.String(8), nullable=False, unique=True),
        sa.Column("digest", sa.LargeBinary(32), nullable=False, unique=True),
        sa.Column("tenant", sa.String(40), nullable=False),
        sa.Column("loop", sa.String(100), nullable=False),
        sa.Column("founded", sa.BigInteger, nullable=False),
        sa.Column("segment", sa.String(60), nullable=False),
        sa.Column("created", sa.BigInteger, nullable=False),
        sa.Column("ends", sa.BigInteger, nullable=False),
        sa.Column("revoked", sa.BigInteger),
        sa.Column("secret", sa.LargeBinary(32), nullable=False),
        sa.Column("most", sa.Integer, nullable=False),
        sa.Column("begun", sa.Integer, nullable=False),
    )


def downgrade() -> None:
    op.drop_table("links")
