"""Kinds: what an argument must name, told in its schema for those who narrow what a local model can write."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from pydantic import Field

KIND = "x-trysquare-kind"

ExistingFile: TypeAlias = Annotated[
    str, Field(description="File, relative to the workspace", min_length=1, json_schema_extra={KIND: "existing_file"})
]
WorkspacePath: TypeAlias = Annotated[
    str, Field(description="File, relative to the workspace", min_length=1, json_schema_extra={KIND: "workspace_path"})
]
Directory: TypeAlias = Annotated[
    str, Field(description="Folder, relative to the workspace", json_schema_extra={KIND: "workspace_path"})
]
Line: TypeAlias = Annotated[int, Field(description="Counted from 1", ge=1, json_schema_extra={KIND: "line"})]
Branch: TypeAlias = Annotated[str, Field(description="Branch", min_length=1, json_schema_extra={KIND: "branch"})]
Version: TypeAlias = Annotated[
    str | None, Field(description="Of the file as you read it; one that changed since is left alone")
]
