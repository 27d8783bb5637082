"""The endpoints of OpenAI's API."""

from __future__ import annotations

from navigator_kernel.gateway.projections import openai_chat, openai_models, openai_responses

ENDPOINTS = (*openai_models.ENDPOINTS, *openai_chat.ENDPOINTS, *openai_responses.ENDPOINTS)
