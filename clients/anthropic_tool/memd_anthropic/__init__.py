"""memd as the backend of the memory tool (`memory_20250818`) of the official Anthropic SDK.

    from memd_anthropic import MemoryTool

    runner = client.beta.messages.tool_runner(model=…, max_tokens=…, messages=[…], tools=[MemoryTool()])

Law: a file is a note, its text the whole note; every change is a verb of memd's, and so journaled. SPEC 13.
"""

from memd_anthropic.tool import AsyncMemoryTool, MemoryTool

__all__ = ["AsyncMemoryTool", "MemoryTool"]
