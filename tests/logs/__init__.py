"""Logs of earlier days, which open and decide as they did (`tests.test_old_logs`); `make` says how they came about."""
