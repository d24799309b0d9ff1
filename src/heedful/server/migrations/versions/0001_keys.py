"""The table of keys. A migration that has been released is never edited."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "keys",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("prefix", sa.String(11), nullable=False, unique=True),
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("tenant", sa.String(40), nullable=False),
        sa.Column("scopes", sa.String(200), nullable=False),
        sa.Column("rate", sa.Float),
        sa.Column("digest", sa.LargeBinary(32), nullable=False, unique=True),
        sa.Column("created", sa.BigInteger, nullable=False),
        sa.Column("revoked", sa.BigInteger),
    )


def downgrade() -> None:
    op.drop_table("keys")
