"""Following values through code."""
