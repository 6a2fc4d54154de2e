"""Methods that some objects of a class lack, and that say why."""

from __future__ import annotations

from collections.abc import Callable
from types import MethodType
from typing import Any, TypeVar, cast

Method = TypeVar("Method", bound=Callable[..., Any])


def available_unless(refusal: Callable[[Any], str | None]) -> Callable[[Method], Method]:
    """Make a method available unless there is a reason why not, which the error says.

    As scikit-learn's ``available_if``, whose ``AttributeError`` names the method alone.

    Parameters
    ----------
    refusal : callable
        Given the object; returns a sentence where it lacks the method, None where it has it.
    """

    def decorate(method: Method) -> Method:
        return cast("Method", _Available(method, refusal))

    return decorate


class _Available:
    def __init__(self, method: Any, refusal: Callable[[Any], str | None]) -> None:
        self._method, self._refusal = method, refusal
        self.__doc__ = method.__doc__

    def __get__(self, thing: Any, owner: type | None = None) -> Any:
        if thing is None:
            return self._method
        why = self._refusal(thing)
        if why is not None:
            raise AttributeError(why)
        return MethodType(self._method, thing)
