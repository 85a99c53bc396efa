"""A measured set for search: tools as rooms have them, queries as people and models write them, and what they mean."""

from __future__ import annotations

from typing import Any

from trysquare import CallContext, Result, Tool, ToolMetadata
from trysquare.core.signature import PassthroughArguments


async def _answer(arguments: dict[str, Any], context: CallContext) -> Result[str]:
    return Result[str].ok("done")


def made(name: str, description: str, *parameters: str, **metadata: str | tuple[str, ...]) -> Tool:
    """A tool for searching; a parameter is written as `name: description`."""
    pairs = (parameter.partition(": ") for parameter in parameters)
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {key: {"type": "string", "description": text} for key, _, text in pairs},
        "additionalProperties": False,
    }
    about = ToolMetadata(**metadata)  # pyright: ignore[reportArgumentType]
    return Tool(
        name=name, description=description, arguments=PassthroughArguments(wire=schema), call=_answer, metadata=about
    )


TOOLS = (
    made("read_file", "Read a text file.", "path: File to read, below the project", category="files"),
    made("write_file", "Write a text file, replacing what was there.", "path: Where to write", "text: What to write"),
    made("rename_file", "Rename or move a file.", "path: Present place", "to: New place", category="files"),
    made("delete_file", "Delete a file for good.", "path: File to delete", category="files"),
    made("list_folder", "List the files in a folder.", "path: Folder to look into", category="files"),
    made("search_code", "Search the source code for a pattern.", "pattern: Regular expression", category="code"),
    made("find_definition", "Go to the place where a symbol is defined.", "symbol: Name of function or class"),
    made("find_references", "Find every place that uses a symbol.", "symbol: Name of function or class"),
    made("run_tests", "Run the project's tests.", "path: Test file or folder", trigger_words=("pytest", "unit test")),
    made("run_command", "Run a shell command in the sandbox.", "command: The command line", trigger_words=("bash",)),
    made("git_status", "Show changed files of the working tree.", category="git"),
    made("git_diff", "Show what changed, line by line.", "revision: Compare with this commit", category="git"),
    made("git_commit", "Record the staged changes.", "message: What was done and why", category="git"),
    made("git_push", "Send commits to the remote repository.", "remote: Name of the remote", category="git"),
    made("git_blame", "Show who last changed each line of a file.", "path: File to look at", category="git"),
    made("debug_start", "Start a debug session for a program.", "program: File to debug", category="debug"),
    made("debug_breakpoint", "Set or clear a breakpoint.", "file: Source file", "line: Line number"),
    made("debug_step", "Step over, into or out of a line.", "kind: Which way to step", category="debug"),
    made("debug_variables", "Show local variables at the present stop.", "frame: Stack frame", category="debug"),
    made("debug_stack", "Show the call stack of a stopped thread.", "thread: Which thread", category="debug"),
    made("debug_stop", "End a debug session.", "session_id: Session to end", category="debug"),
    made("send_email", "Send an email message.", "to: Address", "subject: Subject line", "body: Text of the message"),
    made("read_inbox", "Read new mail in the inbox.", "count: How many messages"),
    made("create_event", "Put an appointment into the calendar.", "start: When it begins", "title: What it is"),
    made("list_events", "List appointments of a day or week.", "day: Which day", category="calendar"),
    made("cancel_event", "Cancel an appointment and tell the guests.", "event_id: Which one", category="calendar"),
    made("get_weather", "Get the current weather in a city.", "city: Name of the city"),
    made("get_forecast", "Get the weather forecast for the next days.", "city: Name of the city", "days: How many"),
    made("translate_text", "Translate a text into another language.", "text: What to translate", "language: Target"),
    made("convert_currency", "Convert an amount of money between currencies.", "amount: How much", "to: Currency"),
    made("create_issue", "Open an issue in the tracker.", "title: Short title", "body: What is wrong"),
    made("close_issue", "Close an issue in the tracker.", "number: Which issue", category="issues"),
    made("comment_on_issue", "Write a comment under an issue.", "number: Which issue", "text: The comment"),
    made("create_pull_request", "Propose changes for review.", "branch: Branch with the changes", category="issues"),
    made("merge_pull_request", "Merge a reviewed pull request.", "number: Which one", category="issues"),
    made("query_database", "Run a read-only SQL query.", "sql: SELECT statement", trigger_words=("postgres", "table")),
    made("describe_table", "Show the columns and types of a database table.", "table: Name of the table"),
    made("upload_image", "Upload a picture to the media library.", "path: Image file", category="media"),
    made("resize_image", "Change the size of a picture.", "width: New width in pixels", category="media"),
    made("transcribe_audio", "Turn recorded speech into text.", "path: Audio file", category="media"),
    made("fetch_page", "Download a web page as Markdown.", "url: Address of the page", category="web"),
    made("search_web", "Search the internet.", "query: What to look for", category="web"),
    made("take_screenshot", "Take a screenshot of a web page.", "url: Address of the page", category="web"),
    made("read_feed", "Read the newest entries of an RSS feed.", "url: Address of the feed", category="web"),
    made("deploy_service", "Deploy a service to production.", "service: Which service", "version: Which build"),
    made("rollback_service", "Go back to the previous release of a service.", "service: Which service"),
    made("restart_service", "Restart a running service.", "service: Which service", category="operations"),
    made("show_logs", "Show the newest log lines of a service.", "service: Which service", category="operations"),
    made("list_containers", "List running containers.", category="operations", trigger_words=("docker",)),
    made("scale_service", "Change how many replicas of a service run.", "replicas: How many", category="operations"),
    made("set_flag", "Turn a feature flag on or off.", "flag: Name of the flag", "project: Where it holds"),
    made("list_flags", "List feature flags and their values.", "project: Where they hold", category="flags"),
    made("get_content", "Get guidelines and documents by expression.", "expression: Which documents", category="guide"),
    made("close_current_action", "Mark the bot's present action as done.", "project: Which project", category="bots"),
    made("story_bot", "Show where the story workflow stands.", "project: Which project", category="bots"),
    made("createInvoice", "Make out an invoice for a customer.", "customer: Who pays", "amount: How much"),
    made("refund_payment", "Give a customer their money back.", "payment_id: Which payment", category="billing"),
    made("list_customers", "List customers with open balances.", category="billing"),
    made("add_contact", "Save a person's phone number and address.", "name: Who", "phone: Number"),
    made("find_contact", "Look up a person in the address book.", "name: Who", category="contacts"),
)

QUERIES = (
    ("read_file", "read_file"),
    ("ReadFile", "read_file"),
    ("create invoice", "createInvoice"),
    ("show me the contents of a file", "read_file"),
    ("move a file to another directory", "rename_file"),
    ("remove a file", "delete_file"),
    ("what files are in this directory", "list_folder"),
    ("grep the source code", "search_code"),
    ("where is this function defined", "find_definition"),
    ("who calls this function", "find_references"),
    ("execute the unit tests", "run_tests"),
    ("pytest", "run_tests"),
    ("bash", "run_command"),
    ("run shell command", "run_command"),
    ("uncommitted changed files", "git_status"),
    ("diff against a commit", "git_diff"),
    ("commit my staged changes", "git_commit"),
    ("push commits to remote", "git_push"),
    ("who changed this line", "git_blame"),
    ("start debugging a program", "debug_start"),
    ("set breakpoint at line", "debug_breakpoint"),
    ("step into", "debug_step"),
    ("inspect local variables", "debug_variables"),
    ("call stack", "debug_stack"),
    ("terminate debug session", "debug_stop"),
    ("email somebody", "send_email"),
    ("check new mail", "read_inbox"),
    ("schedule an appointment", "create_event"),
    ("appointments this week", "list_events"),
    ("weather right now", "get_weather"),
    ("weather forecast tomorrow", "get_forecast"),
    ("translate to French", "translate_text"),
    ("exchange dollars currency", "convert_currency"),
    ("report a bug in the issue tracker", "create_issue"),
    ("close the issue", "close_issue"),
    ("reply under an issue with a comment", "comment_on_issue"),
    ("open a pull request", "create_pull_request"),
    ("merge PR pull request", "merge_pull_request"),
    ("postgres select query", "query_database"),
    ("columns of a table", "describe_table"),
    ("make a photo smaller in pixels", "resize_image"),
    ("upload a photo", "upload_image"),
    ("speech to text", "transcribe_audio"),
    ("download a website page", "fetch_page"),
    ("search the web", "search_web"),
    ("screenshot", "take_screenshot"),
    ("rss", "read_feed"),
    ("deploy to production", "deploy_service"),
    ("undo the last release", "rollback_service"),
    ("log lines of a service", "show_logs"),
    ("docker", "list_containers"),
    ("number of replicas", "scale_service"),
    ("toggle feature flag", "set_flag"),
    ("get the guidelines", "get_content"),
    ("mark action as done", "close_current_action"),
    ("give money back to customer", "refund_payment"),
    ("save a phone number", "add_contact"),
    ("look up a person's address", "find_contact"),
)

MISSPELT = (
    ("wether forcast", "get_forecast"),
    ("brekpoint", "debug_breakpoint"),
    ("transalte text", "translate_text"),
    ("shcedule apointment", "create_event"),
    ("curency", "convert_currency"),
    ("screnshot", "take_screenshot"),
    ("depoly service", "deploy_service"),
    ("git comit", "git_commit"),
    ("pul requst", "create_pull_request"),
    ("databse", "query_database"),
    ("appointmnets of a week", "list_events"),
    ("email msg", "send_email"),
    ("db columns", "describe_table"),
)
