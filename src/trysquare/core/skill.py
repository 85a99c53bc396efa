"""Skill: a resource that teaches an agent a way of working, with the files that belong to it."""

from __future__ import annotations

from dataclasses import dataclass

from trysquare.core.types import JsonObject


@dataclass(frozen=True, kw_only=True, slots=True)
class SkillFile:
    """One file of a skill, with the digest and the size of exactly what is read at its address."""

    uri: str
    digest: str
    size: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Skill:
    """What is told of a skill before any of its files is read: its front matter, and all its files."""

    frontmatter: JsonObject
    files: tuple[SkillFile, ...]
