"""An error of pydantic as one sentence: `model.dropout must be a number from 0 to 1, got nan`."""

from collections.abc import Mapping
from typing import Any

from pydantic import TypeAdapter, ValidationError

from egin_dgl.errors import did_you_mean

MAX_SHOWN = 80  # characters of an invalid value in a message
TYPE_NAMES = {
    "boolean": "true or false",
    "integer": "a whole number",
    "number": "a number",
    "string": "text",
    "array": "a list",
    "object": "a mapping",
}


def format_error(
    error: ValidationError, adapter: TypeAdapter, values: Mapping[Any, Any], group: str = ""
) -> str:
    """The first error as one sentence, with the full name of the option."""
    is_unknown = [detail["type"] == "extra_forbidden" for detail in error.errors()]
    first = error.errors()[is_unknown.index(True) if any(is_unknown) else 0]
    schema = adapter.json_schema()
    schema = inline(schema, schema.get("$defs", {}))
    names, value = [group] if group else [], values
    *places, last = first["loc"]
    for place in places if any(is_unknown) else first["loc"]:  # some are members of unions, not keys
        if isinstance(value, Mapping) and place in value:
            mapping = find_mapping(schema)
            schema = mapping.get("properties", {}).get(place) or mapping.get("additionalProperties", {})
            names, value = [*names, str(place)], value[place]
    if any(is_unknown):
        known = sorted(find_mapping(schema).get("properties", ()))
        name = ".".join([*names, str(last)])
        return f"there is no option {name!r}; valid: {', '.join(known) or 'none'}{did_you_mean(str(last), known)}"
    if first["type"] == "missing":
        return f"needed: {'.'.join([*names, str(last)])}=…"
    return f"{'.'.join(names)} must be {describe_type(schema)}, got {format_value(value)}"


def inline(schema: Any, definitions: dict) -> Any:
    """A JSON schema with its definitions in place of references."""
    if isinstance(schema, list):
        return [inline(one, definitions) for one in schema]
    if not isinstance(schema, dict):
        return schema
    schema = definitions[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
    return {key: inline(one, definitions) for key, one in schema.items() if key != "$defs"}


def find_mapping(schema: dict) -> dict:
    """The schema itself, or the member of a union, that is of a mapping."""
    return next((one for one in schema.get("anyOf", [schema]) if one.get("type") == "object"), {})


def describe_type(schema: dict) -> str:
    """The values that a JSON schema allows, in words."""
    if "anyOf" in schema:
        return " or ".join(describe_type(one) for one in schema["anyOf"] if one.get("format") != "path")
    if "enum" in schema or "const" in schema:
        values = schema.get("enum", [schema.get("const")])
        names = ["false" if value is False else str(value) for value in values]
        return f"one of {', '.join(names)}" if len(names) > 2 else " or ".join(names)
    kind, keys = schema.get("type", ""), ", ".join(schema.get("properties", ()))
    text = schema.get("format") or " ".join([TYPE_NAMES.get(kind, kind), *describe_bounds(schema)])
    if "maxItems" in schema:  # which is also minItems
        text += f" of {schema['maxItems']}"
    if schema.get("items"):
        text += f", each {describe_type(schema['items'])}"
    if kind == "object":
        return f"{text} of {keys}" if keys else text
    return f"{text} ({schema['description']})" if "description" in schema else text


def describe_bounds(schema: dict) -> list[str]:
    low, high = schema.get("minimum"), schema.get("maximum")
    above, below = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
    if above is not None:
        return [f"above {above}"]
    if low is None:
        return []
    if high is None and below is None:
        return [f"of at least {low}"]
    return [f"from {low}", f"to {high}" if below is None else f"to below {below}"]


def format_value(value: Any) -> str:
    """A value in a message, shortened."""
    try:
        text = repr(value)
    except ValueError:  # Python prints no integer of many thousand digits
        text = "a number of very many digits"
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…"
