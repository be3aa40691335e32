"""An MCP client: the OpenAI SDK calls the tools of an MCP server."""

import json

from mcp import Client
from mcp.server.mcpserver import MCPServer
from openai import AsyncOpenAI

client, server = AsyncOpenAI(), MCPServer("shop")


@server.tool()
def price(order: int) -> int:
    """The price of an order in dollars."""
    return 30


@server.tool()
def refund(order: int, amount: int) -> str:
    """Pay an order's price back."""
    return f"{amount} dollars paid back for order {order}"


async def agent(prompt: str) -> str:
    messages = [{"role": "user", "content": prompt}]
    async with Client(server) as shop:
        tools = [
            {"type": "function", "function": {"name": tool.name, "parameters": tool.input_schema}}
            for tool in (await shop.list_tools()).tools
        ]
        while True:
            reply = await client.chat.completions.create(model="gpt-4o-mini", messages=messages, tools=tools)
            message = reply.choices[0].message
            if not message.tool_calls:
                return message.content
            messages.append(message)
            for call in message.tool_calls:
                result = await shop.call_tool(call.function.name, json.loads(call.function.arguments))
                messages.append({"role": "tool", "tool_call_id": call.id, "content": result.content[0].text})
