"""Finds secrets that may leave: a value of the environment, of a file of credentials or of the keyring that reaches
the network, a comment or the address of an image, over several statements and files of one skill; and of three other
tricks of public reports: orders that are fetched, archives with a password and a program, and packages of strangers
that get a token.

All findings are warnings: what they describe is often meant well. There is none for a key that goes to the host of its
own service.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from itertools import accumulate, islice
from typing import TYPE_CHECKING, NamedTuple

from navigator_kernel.skills.scan.context import blanked, is_aside, line_at, open_mark
from navigator_kernel.skills.scan.finding import finding, shortened
from navigator_kernel.skills.scan.flow.text_flow import SENDS, names_set, statements
from navigator_kernel.skills.scan.plain import cells_of, written_out
from navigator_kernel.skills.scan.secrets import ADDRESS, ENVIRONMENT, LOCAL, SHELL_STORE, hosts_of, tokens_read
from navigator_kernel.text import lazy_compile

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from navigator_kernel.skills.scan.flow.text_flow import Statement
    from navigator_kernel.values.resource import Diagnostic

LARGE = 96 * 1024  # bytes of a file from which it is data and no script
LARGEST = 2 * 1024 * 1024  # bytes of a notebook, whose outputs may be large
_DATA = (".xml", ".xsd", ".svg", ".csv", ".tsv", ".lock", ".map", ".min.js", ".html", ".css", ".jsonl")
MOST = 5  # findings of one kind in one file; more of them say nothing new

_IS_SECRET = r"(?:\w{0,60}(?:TOKEN|SECRET|PASSW(?:OR)?D|API_?KEY|ACCESS_?KEY|PRIVATE_?KEY|CREDENTIALS?|MNEMONIC|DATABASE_URL)\w{0,60}|(?:\w{1,60}_)?(?:KEY|PAT|PASS|DSN))"
_VALUE = lazy_compile(  # a value of the environment by its name, in shells, Python, JavaScript, Ruby, Go, PowerShell
    rf"\$\{{?(?P<shell>{_IS_SECRET})\b(?![(])|environ(?:\.get)?\s?[\[(]\s?[\"'](?P<python>{_IS_SECRET})[\"']"
    rf"|(?:[gG]et(?:_?[eE]nv|EnvironmentVariable)|LookupEnv|system attribute\s?)\(?\s?[\"'](?P<get>{_IS_SECRET})[\"']|\b(?:process|Bun)\.env(?:\.(?P<js>{_IS_SECRET})\b|\[[\"'](?P<js2>{_IS_SECRET})[\"'])"
    rf"|(?:\bENV|\$_ENV|\$_SERVER)(?:\.fetch)?[\[(][\"'](?P<ruby>{_IS_SECRET})[\"']|\$env:(?P<ps>{_IS_SECRET})\b|\b(?:env\.get|env::var)\([\"'](?P<deno>{_IS_SECRET})[\"']|\{{\{{\s?secrets\.(?P<workflow>{_IS_SECRET})\b|\bprintenv\s(?P<printenv>{_IS_SECRET})|%(?P<batch>{_IS_SECRET})%|\$ENV\{{(?P<perl>{_IS_SECRET})\}}|\benvironment\[\"(?P<swift>{_IS_SECRET})\"",
    re.ASCII,
)
_QUOTED = lazy_compile(rf"[\"']({_IS_SECRET})[\"']")
_WORD = lazy_compile(rf"\b{_IS_SECRET}\b")
_WHOLE = lazy_compile(_IS_SECRET)
_CLIENT = lazy_compile(r"[-_]token[ =]|api_?key\s?=|auth", re.IGNORECASE)
_SHOWN_VALUE = lazy_compile(rf"[{{<$%]{{1,3}}\s?(?P<name>{_IS_SECRET})\s?[}}>%]{{0,3}}", re.ASCII)
_SHOWN_FILE = lazy_compile(
    r"[<{\[](?:base64 of )?(?:the )?(?:contents?|values?|output) of [^>}\]\n]{1,60}[>}\]]|[<{\[][^>}\]\n]{0,40}(?:\.env|\.ssh|credentials)\b"
)
_KEYRING = lazy_compile(
    r"keyring\.get_(?:password|credential)|security\s+find-(?:generic|internet)-password|secret-tool\s+(?:lookup|search)"
    r"|\bgh auth token\b|\bgit credential (?:fill|get)|\bpass show\b|\bop read\b|\bop item get\b|Get-StoredCredential|CredRead"
    r"|keytar\.(?:getPassword|findCredentials)|SecItemCopyMatching|\bcmdkey\b|\bgcloud auth (?:application-default )?print-\w+-token"
    r"|\baws configure (?:get|export)|\baz account get-access-token|\blpass show\b|\bbw get\b|docker-credential-\w+ get"
    r"|\bkubectl\s+get\s+secrets?\b[^\n|]{0,60}\s-o|169\.254\.169\.254/\S{0,60}security-credentials/|/service-accounts/\w+/token\b|:_authToken\b(?=\s*\|)"
    r"|\bpbpaste\b|\bxclip\b[^\n|]{0,60}\s-o\b|\bxsel\b[^\n|]{0,60}\s-\w?o|\bwl-paste\b|\bGet-Clipboard\b|\bpyperclip\.paste\(|\bclipboard\.readText\("
)
_ALL = lazy_compile(
    r"dict\(os\.environ\)|os\.environ(?:\.(?:copy|items|keys)\(\)|\s*[,)}:]|[ \t]*+$)|(?<![.\w])process\.env\s*[,)}]|\.\.\.process\.env\b|\btoJSON\(secrets\)"
    r"|\bGetEnvironmentVariables\(|\b(?:gci|dir|ls|Get-Item)\s+env:|\bos\.Environ\(\)|\benv::vars(?:_os)?\(\)|\benv\.toObject\(\)|\bSys\.getenv\(\)|\bSystem\.get_?env\(\)"
    r"|(?<![\w>.:])getenv\(\)|\bprocessInfo\.environment\b(?!\s?\[)|\$_ENV\b(?!\s?\[)|\\%ENV\b|\bos\.environb?\b\s?(?:\||\])"
    r"|\bdotenv_values\(|(?:open|Path|readFileSync|readFile|read_text|File\.read)\(?\s?[\"'](?:\./)?\.env(?:\.\w+)?[\"']",
    re.MULTILINE | re.IGNORECASE,
)
_COMPUTED = lazy_compile(
    r"(?:getenv\(|environ(?:\.get\(|\[)|process\.env\[)\s?(?![\"'])\w|\$\{!\w"
)  # with a name from elsewhere
_HELD_FILE = lazy_compile(
    r"[\"'/\\]\.(?:ssh|aws|kube|gnupg|docker)\b(?!/(?:\S{0,30}\.pub\b|authorized_keys|known_hosts|config\b))|[\"'/](?:id_rsa|id_ed25519|credentials|hosts\.yml)[\"']|\br?glob\([\"'](?:\*\*/)?\.env|[\"'/]\.(?:netrc|npmrc|pypirc|git-credentials)\b"
    r"|[\"'/\\]\.(?:openclaw|clawdbot|moltbot)[\"'/\\][\s,\"']{0,6}\S{0,20}?(?:\.env\b|openclaw\.json|moltbot\.json|clawdbot\.json|credentials|auth)"
    r"|\.gemini/oauth_creds|github-copilot/(?:hosts|apps)\.json|\.cargo/credentials|\.gem/credentials|opencode/auth\.json|rclone\.conf\b|credentials\.tfrc\.json"
)
_DOTENV = lazy_compile(  # read or copied by a program
    r"\b(?:base64|e?grep|rg|awk|sed|head|tail|gzip|xxd|openssl|tar|zip|cp|mv|git add)\s[^\n|;&]{0,80}?(?<![\w.\\])\.env(?:\.\w+)?\b(?<!\.example)(?<!\.sample)(?<!\.template)"
)
_REGISTRY = r"\b(?:docker|podman|nerdctl|buildah|skopeo|oras|helm registry|crane auth) login\b"
_NETWORK = lazy_compile(
    r"\bcurl\b|\bwget\b|\b(?:requests|httpx|session|client|http|aiohttp|urllib3|axios|got|superagent)\.(?:get|post|put|patch|request)\b"
    r"|\burlopen\(|\burllib\.request\b|\bsmtplib\b|\.sendmail\(|\.send_message\(|\.sendall\(|\.storbinary\(|\bfetch\(|\baxios\(|\$fetch\(|http\.Post"
    r"|Invoke-(?:WebRequest|RestMethod)|\b(?:irm|iwr)\b|\baws s3 cp\b|\bgsutil cp\b|\brclone copy|\bnc\s|\bncat\s|WebSocket\(|sendBeacon\(|\bxh\s|\bwebbrowser\.open\([^)\n]{0,80}https?:|\bURLSession\b|\bLWP::|[\"']headers[\"']\s?:\s?\{|\bdns\.lookup\(|\b(?i:base_?url|api_?base)[\"']?\s?[:=]\s?[\"'`]https?:"
    r"|\bHttpClient\b|\bhttps? (?:POST|PUT|PATCH|GET)\s|\bhttps?(?:[\"']\))?\.(?:request|get)\(|\breqwest::|Resolve-DnsName|gethostby\w{1,20}\(|getaddrinfo\(|\bdns\.\w*resolve\w*\(|\bfile_get_contents\(\s?[\"']https?:|\bcurl_(?:exec|setopt)\b|Net::HTTP|\b(?:dig|nslookup|host)\s[^\n]{0,80}[$`{]"
    r"|\bgit\s+(?:push|clone|fetch|pull|remote\s+(?:add|set-url))\b[^\n]{0,60}https?://[^\s/@]{1,120}@"
    r"|\bHTTParty\.|\bFaraday\.|\bRestClient\.|\bExcon\.|\bTyphoeus\.|\bHTTP::Tiny\b|\bMojo::UserAgent\b|\bcurl_init\(|->(?:post|put|request)\(\s?[\"']|\bhttp\.NewRequest|\bhttp\.PostForm\(|\bureq::"
    r"|\b(?:POST|PUT)\(\s?[\"']https?:|\bhttr2?::|\breq_perform\(|\bHttpRequest\.newBuilder\(|\bopenConnection\(|\bOkHttpClient\b|\bUpload(?:String|File|Data|Values)\w*\(|\bStart-BitsTransfer\b"
    r"|\.(?:Post|Put|Patch|Send)Async\(|\bHTTPoison\.|\bReq\.(?:post|put)!?\(|\bHTTP\.(?:post|put|request)\(|\bpycurl\b|\b(?:needle|undici|ky|phin|niquests|treq)\.(?:post|put|request)\(|\bneedle\(\s?[\"']"
    r"|\b(?:s|sock|socket|conn|req|ws|smtp|server|ftp)\.(?:send|write|storbinary|sendmail)\w*\("
    r"|\b(?:page|driver|browser|tab)\.(?:goto|navigate|get|open)\([^)\n]{0,200}(?:\$\{|\+|\benv|\{[a-zA-Z_])"
    r"|\bredis-cli\b[^\n]{0,160}\s(?i:set|lpush|rpush|publish|hset|xadd|append)\s|\bmosquitto_pub\b|\b(?:psql|mysql|mariadb|mongosh|sqlcmd|clickhouse-client)\s[^\n]{0,200}[\s\"'](?:-[ceQq]|--(?:eval|command|query|execute))[ =][^\n]{0,300}[$`]"
    rf"|{_REGISTRY}[^\n|;&]{{0,80}}?(?<![{{(])\s[\w-]{{1,60}}\.[\w.-]{{1,60}}|\b(?:docker|podman|buildah|nerdctl)\s(?:buildx\s)?build\b[^\n]{{0,300}}\s(?:https?://|git@)"
)
_MAILS = lazy_compile(
    r"\.send_message\(|\.sendmail\(|\.sendall\(|\.sendto\(|\bnc\s|\bncat\s|\bmailx?\s+-s|\bsendmail\b|/dev/tcp/"
    r"|\.(?:chat_post\w+|files_upload\w*|upload_file(?:obj)?|put_object|sendMail|chat\.postMessage)\(|\bopen_sftp\(\)\.put|\bSCPClient\(|\bDiscordWebhook\("
    r"|\b(?:sentry_sdk|[sS]entry|[rR]ollbar|[bB]ugsnag|posthog|mixpanel|[aA]nalytics|amplitude)\.(?:capture|set|track|identify|log|report|notify|add_?[bB]readcrumb|configure_scope|error|info)\w{0,20}\("
    r"|(?<![.\w>])mail\(\s?[\"'$][^)\n]{1,200},|\bopenssl s_client\b[^\n]{0,120}<<<"
)
_PUBLIC = lazy_compile(
    r"\bgh (?:issue|pr) (?:comment|create|edit|review)\b|\bgh gist create\b|\bgh api\b[^\n]{0,120}(?:comments|issues|contents|gists)"
    r"|\bglab (?:mr|issue) (?:note|create)\b|(?i:\bcreate_?(?:issue_?|review_?)?comment\(|\bcreate_?(?:issue|review|discussion)\(|\badd_?comment\()|\bgit (?:commit|tag|notes)\b[^\n]{0,40}-\w{0,4}m|\bgit add\s(?:-f|--force)\b"
)
_IMAGE = lazy_compile(
    r"!\[[^\]\n]{0,200}\]\(\s?<?https?://|<img\b[^>\n]{0,200}src\s?=|\.src\s?=[^=]|background(?:-image)?\s?:\s?url\("
)
_AUTH = lazy_compile(
    r"(?:authorization|bearer|\bx-[\w-]{1,30}|api-?key[\"']?\s?[:=]|private-token|headers?\b|\bauth\b|\s-u(?!ri\b)\s?|--user\b|\bPGPASSWORD=|\bMYSQL_PWD=|\bREDISCLI_AUTH=|\s-[aP]\s|-H\s|--header|(?:Client|App|Bot|Webhook|OpenAI|Anthropic|Session)(?:\.new)?\([^()\n]{0,80}?(?:token|api_?key|profile_name)\s?[=:])[^,;\n]{0,120}$",
    re.IGNORECASE,
)
_HEADER_NAME = lazy_compile(r"header|auth", re.IGNORECASE)
_SAVED = lazy_compile(
    r"(?:>{1,2}\s?|\btee (?:-a )?|\b(?:tar|zip)\b[^\n|;&]{0,60}?\s|(?:^|[;&|(`$])\s{0,8}(?:sudo\s)?(?:cp|mv|ditto|Copy-Item)\s[^\n|;&]{1,300}\s|-out(?:put)?[ =]|\b(?:Out-File|Set-Content)\s(?:-\w{1,20}\s)?|\bto\s+`?)[\"']?(?P<file>(?:[\w./~$:\\-]*[/\\])?[\w.-]+\.\w{1,6}|/tmp/[\w.-]+)"
)
_WRITTEN = lazy_compile(
    r"(?:open\(|Path\(|writeFile(?:Sync)?\(|\bcopy\w{0,12}\([^,\n]{1,80},)\s?[\"'](?P<file>[\w./~-]{3,80})[\"']"
)
_NAME = lazy_compile(r"[A-Za-z_]\w*")
_CHANGED = lazy_compile(  # also by R and AppleScript
    r"^\s*+(\w+)\s?<-\s|\bexports\.(\w+)\s?=(?!=)|\bset\s(\w+)\sto\s|\bfor\s\(?(?:const\s|let\s)?\[?\w+,\s?(\w+)\]?\s(?:in|of|:=)\s|\bopen\(\s?my\s\$(\w+)|\sas\s\$\w+\s?=>\s?\$(\w+)|(?<![.\w])([A-Za-z_]\w*)(?:(?:\.\w+){0,2}\.(?:append|add|update|set_content|attach|write|set|push|extend)\(|\[[^\]\n]{1,60}\]\s?=(?!=)|\.\w+\s?=(?!=))"
)
_FUNCTION = lazy_compile(
    r"\b(?:def|function)\s+(?P<name>\w+)\s?\((?P<given>[^)\n]{0,200})\)|^[ \t]*(?:function\s+)?(?P<shell>\w+)\s?\(\)\s?\{",
    re.MULTILINE,
)
_CLASS = lazy_compile(r"\s*+(?:export\s+)?(?:default\s+)?class\s")
_HOST = lazy_compile(
    r"\bhost(?:name)?[\"']?\s?[:=]\s?[\"']([\w.-]{3,80}\.\w{2,})[\"']|(?:\.connect|HTTPS?Connection|FTP|FTP_TLS|open_connection|create_?[cC]onnection|(?:SysLog|HTTP|Socket)Handler|TCPSocket\.\w{3,4}|fsockopen)\((?:address\s?=\s?)?\(?\s?[\"']([\w.-]{3,80})[\"']"
    r"|\bDial\w*\(\s?\"\w{2,5}\",\s?\"([\w.-]{3,80}):|\b(?:mongodb(?:\+srv)?|rediss?|amqps?)://(?:[^\s/@\"'<>]{1,120}@)?([\w.-]{3,200})"
    r"|\b(?:redis-cli|mosquitto_pub|psql|mysql|mariadb|mongosh|sqlcmd|clickhouse-client)\b[^\n]{0,120}?\s(?:-h|-S|--host|--server)[ =]?([\w-]{1,60}\.[\w.-]{1,60})"
    rf"|{_REGISTRY}[^\n|;&]{{0,80}}?(?<![{{(])\s([\w-]{{1,60}}\.[\w.-]{{1,60}})"
)
_LISTED = lazy_compile(
    rf"\bfor\s+\w+\s+in\s[^\n;:]*|[\[({{](?:\s*[\"']\w+[\"'],?)*\s*[\"']{_IS_SECRET}[\"'](?:,?\s*[\"']\w+[\"'])*\s*,?\s*[\])}}]"
)
_RETURNED = lazy_compile(r"^\s*(?:return|yield|echo|print(?:f|_r)?|puts)\b")
_LOADS = lazy_compile(
    r"^[^\n]*\b(?:import|require|require_relative|export\s+\*)\b[^\n]*|^[ \t]*+(?:source|\.)\s[^\n]*", re.MULTILINE
)
_COMMANDS = lazy_compile(r'"(?:scripts|hooks|tasks)"\s?:')  # JSON in which commands stand
_FILE_NAME = lazy_compile(r"[\w-]+")
_ALSO_SET = lazy_compile(r"\b(\w+):\s?[\"']?\$\{\{\s?secrets\.|\)\s{1,9}as\s{1,9}(\w+)\s?:")  # in a workflow, in `with`
_EXPORTS = lazy_compile(r"\bexports\b|\bexport\s+default\b")
_WHOLE_EXPORT = lazy_compile(r"\bexport\s+default\b|\bmodule\.exports\s?=")
_DEFAULT = lazy_compile(
    r"\b(?:import\s+(\w+)(?:\s?,[^\n;]{1,200})?\s+from\s+|(?:const|let|var)\s+(\w+)\s?=\s?require\(\s?)[\"'](?:[\w@.-]+/)*(?P<from>[\w-]+)(?:\.\w+)?[\"']"
)
_KEYED = lazy_compile(r"(?<!\w)([A-Za-z_]\w*+)[\"']?\s?:\s")
_CONSTANT = lazy_compile(  # the name of a secret in a variable
    rf"\b(?P<name>\w+)\s?(?:<-|:?=)[^=\n][^\n]{{0,80}}?(?:[\"']|\becho\s{{1,99}})(?P<value>{_IS_SECRET})\b"
)
_PRINTS = lazy_compile(
    r"\b(?:print(?:f|ln!?|_r)?|puts|echo|console\.log|stdout\.write|fmt\.Print\w*|Write-(?:Output|Host)|var_dump)\b|^\s*+(?:cat|env|printenv|jq|gh auth token|security find|Get-Content|Get-ChildItem|gci)\b",
    re.MULTILINE,
)
_ELSEWHERE = lazy_compile(  # not to its output, or not the value
    r"stderr|>&2|\|\s(?!ConvertTo|base64|jq|gzip|tr|sort)|>\s|\b(?:bool|len|isset|empty|is_set|mask\w*|redact\w*)\(|\bis (?:not )?None\b|\bin os\.environ|\[:\d|\[-\d|\?\s?[\"']|:\+|:0:\d|\*{3}|[!=]==?\s|\.slice\(|\.substr"
)
_INPUT = lazy_compile(
    r"\bargv\b|\bstdin\b|\bargparse\b|\bARGV\b|\bSTDIN\b|\$[1@*]|\bfileinput\b|\bparam\(|\$args\b|\bos\.Args\b|\benv::args\b|\bDeno\.args\b|/dev/stdin|@-|\bcommandArgs\(|\bparseArgs\b"
)
_ANSWER = lazy_compile(
    r"^[^=\n]{1,80}=\s{0,4}\(?(?:await\s+)?\(?(?:await\s+)?(?:(?:requests|httpx|session|client|axios|got)\.\w+|fetch|axios|got|\w+(?:\.\w+)+\.(?:create|generate|complete|invoke|send|query)\w*)\(|=[\"']?\$\(\s?(?:curl|wget)\b"
)
_SEARCHED = lazy_compile(  # patterns, as checkers have them
    r"\b(?:re\.\w+|RegExp|Pattern\.compile|regexp\.\w+)\(\s{0,9}[rbu]{0,2}(?:\"[^\"\n]*\"|'[^'\n]*')"
    r"|\br(?P<mark>[\"'])(?![^\n]{0,400}https?:)(?=[^\n]{0,400}?(?:\\[sbwd]|\[\^|\.\*|\(\?))[^\n]{0,400}?(?P=mark)"
)
_CALLED = lazy_compile(r"(?<!\w)(\w++)\(")
_KEEPS = frozenset(  # functions whose result still holds what they were given
    """get getenv environ str dict list bytes dumps stringify b64encode encode decode strip trim replace join format hexlify hex
    toString read read_text read_bytes open readFileSync readFile Path home expanduser homedir quote urlencode btoa from slice
    get_password getPassword dotenv_values items entries values check_output""".split()
)
_PROSE = frozenset(("md", "markdown", "mdx", "txt", "rst"))
LOADED = 5  # files that one file loads, and that are read with it
FEW = 6  # lines of a statement in which a secret and an unknown address belong together
BODY = 1_500  # characters of a function's body
_CLIENTS = (  # calls that make something that sends
    r"requests\.[sS]ession|httpx\.(?:Async)?Client|aiohttp\.ClientSession|urllib3\.PoolManager|HTTPS?Connection|boto3\.(?:client|resource)"
    r"|paramiko\.\w+|SCPClient|(?:Async)?WebClient|(?:telegram\.)?Bot|(?:Sync)?Webhook\.from_url|IncomingWebhook|axios\.create|ky\.(?:create|extend)"
    r"|got\.extend|createTransport|undici\.(?:Client|Pool)"
)
_MODULES = r"(?:requests|httpx|aiohttp|urllib3|undici|ky|got|axios|node-fetch|needle|superagent)"
_IMPORTED = lazy_compile(
    rf"\bfrom\s+{_MODULES}\s+import\s+(?P<python>[\w ,]{{1,200}})|\bimport\s+(?P<whole>{_MODULES}\s+as\s+\w+)"
    rf"|\b(?:import|const|let|var)\s(?P<js>[\w ,{{}}:*]{{1,200}}?)\s?(?:from\s|=\s?require\()\s?[\"']{_MODULES}[\"']"
)
_CHANNELS = lazy_compile(  # what is made to send bytes, by any of its methods
    r"\b(\w{1,40})(?:,\s?(\w{1,40}))?\s?:?=\s?(?:await\s)?(?:new\s)?(?:[\w.]{0,40}\.)?(?:ServerProxy|open_connection|create_connection|createSocket|createConnection|net\.[cC]onnect|tls\.[cC]onnect|MongoClient|(?:net|tls)\.Dial\w*|TCPSocket\.(?:new|open)|fsockopen|stream_socket_client|https?(?:[\"']\))?\.request)\("
    r"|\b(\w+)\.addHandler\(\s?(?:\w+\.){0,3}(?:SysLog|HTTP|Socket|Datagram)Handler\("
)
_SENDING = r"(?:get|request|(?:post|put|patch|send|upload|publish|execute|chat|stream|storbinary)\w{0,20})"
_ENVIRONMENTS = lazy_compile(  # other names for the environment, and values that are taken out of it
    r"(?<!\w)(?P<name>[A-Za-z_]\w{0,40})\s?=\s?(?:process|Bun)\.env[ \t]{0,9}(?:;|$)|\{\s?env(?:(?:\s+as\s+|\s?:\s?)(?P<renamed>\w+))?\s?\}\s?(?:from|=\s?require\()\s?[\"'](?:node:)?process[\"']"
    r"|\b(?:const|let|var)\s?\{(?P<taken>[^{}]{1,600})\}\s?=\s?(?P<of>(?:process|Bun)\.env|\w{0,9}[eE]nv\w{0,9})\b",
    re.MULTILINE,
)
_SOURCES = (
    _VALUE,
    _KEYRING,
    SHELL_STORE,
    ENVIRONMENT,
    _ALL,
    _HELD_FILE,
    _COMPUTED,
    _ENVIRONMENTS,
    _DOTENV,
    _SHOWN_VALUE,
    _SHOWN_FILE,
)
# Of the slow ones, parts of every match, in lower case
_NEEDLES = {
    _KEYRING: (
        "keyring.get_", "find-generic-", "find-internet-", "secret-tool", "gh auth token", "git credential ", "pass show", "op read", "op item get", "get-storedcredential",
        "credread", "keytar.", "secitemcopymatching", "cmdkey", "gcloud auth ", "aws configure ", "az account get-access-token", "bw get",
        "docker-credential-", "kubectl", "169.254.169.254/", "/service-accounts/", ":_authtoken", "pbpaste", "xclip", "xsel", "wl-paste", "get-clipboard",
        "pyperclip.paste(", "clipboard.readtext(",
    ),
    _ALL: (
        "os.environ", "process.env", "processinfo.environment", "getenvironmentvariables(", "tojson(secrets)", "env:", "env.toobject()", "system.get", "getenv()", "$_env", "%env",
        "dotenv_values(", "\".env", "'.env", "./.env",
    ),
    SHELL_STORE: (
        ".ssh", "id_rsa", "id_ed25519", "id_ecdsa", "id_dsa", ".aws", ".netrc", ".git-credentials", ".pgpass", ".vault-token", ".pypirc", ".npmrc", ".gnupg", ".kube", ".docker/", ".config/",
        "application_default_credentials", ".claude/", ".codex/", "login data", "login\\ data", "cookies.sqlite", "chrome/", "key4.db", "logins.json", "wallet.dat", ".ethereum", ".electrum",
        "/proc/", "/etc/shadow", "_history", "find-", "dump-", "export-", "secret-tool", "cmdkey", ".env",
    ),
}  # fmt: skip
_SINKS = (_NETWORK, SENDS, _PUBLIC, _IMAGE, _MAILS)
_RINGS = {"gh ": "GITHUB_TOKEN", "gcloud": "GOOGLE_TOKEN", "az ": "AZURE_TOKEN", "aws": "AWS_TOKEN", **dict.fromkeys(("pbp", "xclip", "xsel", "wl-", "Get-Cl", "pyper", "clipb"), "CLIPBOARD")}  # fmt: skip
_CONTINUED = lazy_compile(r"\\\n")
_HEREDOC = lazy_compile(
    r"\b(?:curl|wget|nc|ncat|mailx?|sendmail|https?)\b[^\n]{0,400}<<-?\s?(\w{1,20})[^\n]{0,80}\n[\s\S]{0,1500}?\n\s{0,8}\1\b"
)

# Words of a secret's name that do not name a service
_PLAIN = frozenset(
    "API KEY TOKEN SECRET PASSWORD PASSWD PASS ACCESS PRIVATE CREDENTIAL CREDENTIALS AUTH APP USER ID MY THE BOT CLIENT "
    "SERVICE ACCOUNT BEARER OAUTH PAT PERSONAL URL DATABASE DB DSN ADMIN ROOT PROD DEV TEST MASTER SESSION WEBHOOK SIGNING "
    "REFRESH INTEGRATION ROLE PUBLIC SERVER INTERNAL MNEMONIC KEYS TOKENS KEYID HTTP HTTPS BASE GATEWAY AI APIKEY LOCAL CLIPBOARD".split()
)
_ALSO = {  # hosts of a service whose name is not in them
    "GH": "github|githubusercontent", "HF": "huggingface", "HUGGING": "huggingface", "GEMINI": "google|googleapis", "AWS": "amazonaws", "CF": "cloudflare",
    "DD": "datadog", "TG": "telegram", "CLAUDE": "anthropic", "JIRA": "atlassian", "CONFLUENCE": "atlassian", "GCP": "google|googleapis",
    "AZURE": "microsoft|microsoftonline|windows.net|azure|visualstudio", "TWITTER": "x.com|twitter", "FB": "facebook", "GL": "gitlab", "PYPI": "pypi", "WECHAT": "weixin",
    "DINGTALK": "dingtalk", "FEISHU": "feishu|larksuite", "LARK": "feishu|larksuite", "QWEN": "aliyun", "DASHSCOPE": "aliyun",
    "ZHIPU": "bigmodel", "KIMI": "moonshot", "OPENAI": "openai|azure", "GOOGLE": "google|googleapis|youtube", "YOUTUBE": "google|googleapis|youtube",
    "CI": "gitlab", "YT": "google|googleapis|youtube", "BRAVE": "brave|search", "TWILIO": "twilio", "WECOM": "qq", "BARK": "day.app", "XAI": "x.ai", "MAPS": "google|googleapis", "GITHUB": "githubcopilot|ghcr", "SENDGRID": "sendgrid",
}  # fmt: skip
# Secrets of services that many people have: to another host, one is told of even as a header
_WIDE = lazy_compile(
    r"^(?:GITHUB|GH|GITLAB|AWS|ANTHROPIC|OPENAI|CLAUDE|GOOGLE|GEMINI|GCP|AZURE|NPM|NODE_AUTH|PYPI|TWINE|SLACK|STRIPE|HF|HUGGING|DOCKER|SSH|KUBE|DATABASE|VERCEL|CLOUDFLARE|CF)(?:_|$)"
)


class _Saved(NamedTuple):
    """What the scripts and commands of a skill leave for others: the secrets in files and in what scripts print, and
    the hosts of scripts that send what they are given."""

    files: dict[str, frozenset[_Secret]]
    printed: dict[str, frozenset[_Secret]]
    forwards: dict[str, frozenset[str]]

    def write(self, text: str, secrets: frozenset[_Secret]) -> None:
        """Notes that the files which a statement writes hold these secrets."""
        for hit in (*_SAVED.finditer(text), *_WRITTEN.finditer(text)) if secrets else ():
            if len(hit["file"]) > 4:
                self.files[hit["file"]] = self.files.get(hit["file"], frozenset()) | secrets

    def print(self, script: str, secrets: frozenset[_Secret]) -> None:
        """Notes that a script prints these secrets; what only signs in, such as a client, is not printed itself."""
        shown = frozenset(secret for secret in secrets if not secret.signs_in)
        if shown and len(script) > 4:
            self.printed[script] = self.printed.get(script, frozenset()) | shown

    def senders(self, text: str, script: str) -> list[frozenset[str]]:
        """The hosts of each other script that a statement of `script` names and that sends what it is given."""
        others = self.forwards.keys() - self.printed.keys() - {script}
        return [self.forwards[name] for name in sorted(others) if name in text]

    def of(self, text: str) -> frozenset[_Secret]:
        """The secrets of the files that a statement names, and of the scripts whose output it uses."""
        outputs = (secrets for name, secrets in self.printed.items() if name in text and _uses_output(name, text))
        return frozenset().union(*(self.files[file] for file in self.files if file in text), *outputs)


def _uses_output(name: str, text: str) -> bool:
    name = re.escape(name)
    called = rf"(?:\$\(|`|<\(|\b(?:exec\w*|spawn\w*|check_output|run|getoutput|popen|shell_exec|capture\w*)\()[^)\n]{{0,160}}{name}"
    return bool(lazy_compile(rf"{called}|{name}[^\n;&|]{{0,160}}(?:\|(?!\|)|>)").search(text))


def _printed(text: str) -> str:
    """What a statement prints for another program; empty for a statement that only shows whether a value is there."""
    hit = _PRINTS.search(text)
    return text[hit.start() :] if hit and not _ELSEWHERE.search(text, hit.start()) else ""


class _Secret(NamedTuple):
    """A secret in a statement: its name, empty for a file or the keyring, whether it only signs in, and how a token of
    a known service is read."""

    name: str
    signs_in: bool = False
    token: str = ""


def findings(files: Mapping[str, bytes]) -> Iterator[Diagnostic]:
    """Warnings about the files of one skill."""
    texts = {
        path: text
        for path, data in sorted(files.items(), key=lambda file: (file[0].count("/"), file[0]))
        if not path.lower().endswith(_DATA) and b"\0" not in data[:4096] and not is_aside(path)
        if (text := _text(path, data)) is not None
    }
    manifest = next((text for path, text in texts.items() if path.lower().endswith("skill.md")), "")
    about = manifest[: max(manifest.find("\n---", 4), 0)].lower()  # it usually names the service that the skill is for
    joined = {  # a command on one line, without what is only searched for, and every character in its place
        path: _HEREDOC.sub(
            lambda hit: hit[0].replace("\n", ";"),
            written_out(blanked(_CONTINUED.sub("  ", text), _SEARCHED.finditer(text))),
        )
        for path, text in texts.items()
        if not path.endswith(".json") or _COMMANDS.search(text)
    }
    places = {(path, hit) for path, text in texts.items() for hit in _tricks(text, texts)}
    has_secret = any(map(_sources_in, joined.values()))
    saved = _Saved({}, {}, _forwards(joined) if has_secret else {})
    for path in joined if has_secret else ():
        places.update(_leaks_of(path, joined, about, saved))
    for path, text in joined.items():  # what it sends may be written by a script that comes later
        if any(file in text for file in (*saved.files, *saved.printed)):
            places.update(_leaks_of(path, joined, about, saved))
    count = Counter[tuple[str, str]]()
    for path, (code, at, message) in sorted(places):
        count[path, code] += 1
        if count[path, code] <= MOST:
            text = texts[path]
            line = text[text.rfind("\n", 0, at) + 1 : (text.find("\n", at) + 1 or len(text) + 1) - 1]
            shown = shortened(line) or message
            yield finding(code, "warning", path, message, line_at(text, at), shown, judged=line or message)


def _text(path: str, data: bytes) -> str | None:
    """The text of a file; None for one that is too large to be a script."""
    is_notebook = path.lower().endswith(".ipynb")
    if len(data) > (LARGEST if is_notebook else LARGE):
        return None
    text = data.decode("utf-8", "replace").replace("\r\n", "\n")
    text = cells_of(text) if is_notebook else text
    return text if len(text) <= LARGE else None


def _forwards(texts: Mapping[str, str]) -> dict[str, frozenset[str]]:
    """The names of scripts that send what they are given, with the hosts in them."""
    scripts = {path.rpartition("/")[2]: text for path, text in texts.items() if path.rpartition(".")[2] not in _PROSE}
    return {
        name: _hosts(text)
        for name, text in scripts.items()
        if len(name) > 4 and _INPUT.search(text) and any(sink.search(text) for sink in _SINKS)
    }


def _leaks_of(
    path: str, texts: Mapping[str, str], about: str, saved: _Saved
) -> Iterator[tuple[str, tuple[str, int, str]]]:
    """The leaks of a file, which is read together with each file that it loads, and with what that one loads."""
    for other in _loaded_by(path, texts) or [""]:
        read = [*reversed([name for name in _loaded_by(other, texts) if name != path]), other] if other else []
        begins = [*accumulate((len(texts[name]) + 1 for name in read), initial=0)]
        whole = "\n".join([*(texts[name] for name in read), texts[path]])
        for code, at, message in _leaks(path, whole, about, saved, _defaults(read, begins, whole)):
            place = bisect_right(begins, at) - 1
            yield [*read, path][place], (code, at - begins[place], message)


def _loaded_by(path: str, texts: Mapping[str, str]) -> list[str]:
    """The files that a script loads, in the order of their names, at most `LOADED`."""
    ending = path.rpartition(".")[2]
    words = frozenset() if ending in _PROSE else frozenset(_FILE_NAME.findall(" ".join(_LOADS.findall(texts[path]))))
    loaded = (
        other
        for other in texts
        if other != path and other.endswith(ending) and other.rpartition("/")[2].partition(".")[0] in words
    )
    return [*islice(loaded, LOADED)] if words else []


def _defaults(files: Sequence[str], begins: Sequence[int], whole: str) -> list[tuple[int, set[str]]]:
    """Where each loaded file ends in `whole`, and the names under which others import its default export."""
    stems = [file.rpartition("/")[2].partition(".")[0] for file in files]
    imported = [(hit[1] or hit[2], hit["from"]) for hit in _DEFAULT.finditer(whole)] if stems else []
    return [
        (end, {name for name, source in imported if source == stem})
        for stem, end in zip(stems, begins[1:], strict=True)
    ]


def _leaks(
    path: str, text: str, about: str, saved: _Saved, defaults: Sequence[tuple[int, set[str]]] = ()
) -> Iterator[tuple[str, int, str]]:
    """`saved` is what earlier statements of the skill wrote and printed; what `text` does is added. `defaults` says of
    each part of the text where it ends, and the names of its default export."""
    script = "" if path.rpartition(".")[2] in _PROSE else path.rpartition("/")[2]
    sources = _sources_in(text)
    if not (saved.files or saved.printed or sources):
        return
    clients, sends = _clients(text)
    sinks = [sink for sink in (*_SINKS, sends) if sink and sink.search(text)]
    is_kept = _SAVED.search(text) or (script and _PRINTS.search(text))
    if not (saved.files or saved.printed or sinks or is_kept):
        return
    every = list(statements(text))
    carriers, of_environment = _taken(text)  # names, with the secrets that they were set to
    places: dict[str, frozenset[str]] = {}
    own: set[str] = set()  # names that the script itself sets to something else
    listed = {name for hit in _LISTED.finditer(text) for name in _WORD.findall(hit[0])}
    constants = {hit["name"]: hit["value"] for hit in _CONSTANT.finditer(text)}
    functions = {hit["name"] or hit["shell"]: hit for hit in _FUNCTION.finditer(text)}
    leaks: dict[int, tuple[int, str]] = {}
    # a function is defined before it is called, and its names count, too; `env:` may stand after `run:`
    for one in every * 2 if functions or "secrets." in text else every:
        words = _NAME.findall(one.text)
        names = frozenset(words)
        secrets = read = _read(one.text, sources, own, listed, constants, of_environment)
        first = one.text.partition("\n")[0]  # the other lines are statements, too
        fresh = {name for name in names_set(first) if words.count(name) == 1}  # set here, and not used
        for name in (names & carriers.keys()) - fresh:
            secrets |= _carried(one.text, name, carriers[name])
        written = saved.of(one.text)
        secrets |= written
        hosts = _hosts(one.text).union(*(places[name] for name in names & places.keys()))
        given = names_set(first) | {next(filter(None, hit.groups())) for hit in _CHANGED.finditer(first)}
        given |= {name for set_by in (_ALSO_SET, _CHANNELS) for hit in set_by.findall(first) for name in hit if name}
        if hosts:
            places |= dict.fromkeys(given & clients if secrets else given, hosts)
        if not secrets:
            if "\n" not in one.text:
                own |= {name for name in given if name.isupper()}
            continue
        is_sink = any(sink.search(one.text) for sink in sinks)
        if _RETURNED.search(one.text) and _KEEPS.issuperset(_CALLED.findall(one.text)):
            function = _function_of(text, one.at, functions)
            # one that only returns what it was given holds nothing itself
            if function and (read or names & carriers.keys() - set(_NAME.findall(function["given"] or ""))):
                given.add(function["name"] or function["shell"])
        given |= _exported(one, defaults)
        if _ANSWER.search(one.text):  # what a service answers is not what it was asked with
            given = set()
        carriers |= {name: carriers.get(name, frozenset()) | _named(name, secrets, clients) for name in given}
        saved.write(one.text, frozenset() if is_sink else secrets)
        printed = _printed(one.text)
        shown = _read(printed, sources, own, listed, constants, of_environment)
        saved.print(script, shown.union(*(carriers.get(word, ()) for word in _NAME.findall(printed))))
        judged = one.text
        # a script that sends its input gets whole files and what others print; a token may be to sign in with
        given_away = written | {secret for secret in read if not (secret.name or secret.token)}
        if not is_sink and given_away and (scripts := saved.senders(one.text, script)):
            secrets, hosts, is_sink = given_away, hosts.union(*scripts), True
        for called in [functions[name] for name in names & functions.keys()] if not is_sink else ():
            if one.at <= called.start() < one.at + len(one.text):
                continue  # defined in it, not called
            parameters = _NAME.findall(called["given"] or "")
            carriers |= {name: carriers.get(name, frozenset()) | secrets for name in parameters}
            places |= {name: places.get(name, frozenset()) | hosts for name in parameters if hosts}
            body = text[called.end() : called.end() + BODY].partition("\n\n")[0]
            if called["shell"] and "$" in body and any(sink.search(body) for sink in sinks):
                judged, hosts, is_sink = f"{body} {one.text}", hosts | _hosts(body), True
        # the statements of a function or a class are judged each by itself
        is_sink = is_sink and not ("\n" in one.text and (_FUNCTION.match(one.text.lstrip()) or _CLASS.match(one.text)))
        if is_sink and (message := _judged(judged, secrets, hosts, about)):
            line = text.count("\n", 0, one.at)
            lines = range(line, line + one.text.count("\n") + 1)
            if not any(number in leaks for number in lines):
                leaks |= dict.fromkeys(lines, (one.at + len(one.text) - len(one.text.lstrip()), message))
    for at, message in sorted(set(leaks.values())):
        yield "secret-leaves", at, message


def _exported(one: Statement, defaults: Sequence[tuple[int, set[str]]]) -> set[str]:
    """The names under which others may use what a statement exports."""
    names = set(_KEYED.findall(one.text)) if _EXPORTS.search(one.text) else set()
    if _WHOLE_EXPORT.search(one.text):
        names |= next((names for end, names in defaults if one.at < end), set())
    return names


def _taken(text: str) -> tuple[dict[str, frozenset[_Secret]], re.Pattern[str] | None]:
    """The names that are set to values of the environment in braces, and a pattern for the values that are read by
    another name of the environment."""
    places = list(_ENVIRONMENTS.finditer(text))
    names = sorted({hit["name"] or hit["renamed"] or "env" for hit in places if not hit["taken"]})
    taken: dict[str, frozenset[_Secret]] = {}
    for hit in places:
        for part in hit["taken"].split(",") if hit["of"] in {"process.env", "Bun.env", *names} else ():
            name, _, renamed = part.partition("=")[0].strip().partition(":")
            if _WHOLE.fullmatch(name.strip()):
                taken[renamed.strip() or name.strip()] = frozenset({_Secret(name.strip())})
    of = "|".join(names)
    read = rf"\b(?:{of})(?:\.|\[[\"'])(?P<name>{_IS_SECRET})\b|(?:stringify|entries|values)\(\s?(?:{of})\s?[,)]"
    return taken, lazy_compile(read, re.ASCII) if names else None


def _clients(text: str) -> tuple[frozenset[str], re.Pattern[str] | None]:
    """The names of clients that the text makes or imports, and a pattern for the calls that send through them."""
    called, modules, made = set[str](), set[str](), _CLIENTS
    for hit in _IMPORTED.finditer(text):
        for part in (hit["python"] or hit["whole"] or hit["js"]).replace("{", " { ").split(","):
            words = [word for word in _NAME.findall(part) if word != "as"]
            if not words:
                continue
            if words[0][0].isupper():
                made += f"|{words[-1]}"
            elif hit["python"] or "{" in hit[0]:
                called.add(words[-1])
            else:
                modules.add(words[-1])
    makes = rf"\b(\w+)\s?=\s?(?:await\s)?(?:new\s)?(?:[\w.]{{0,40}}\.)?(?:{made})\(|(?:{made})\([^\n]{{0,200}}?\)\s+as\s+(\w+)"
    clients = {name for pair in lazy_compile(makes).findall(text) for name in pair if name}
    channels = {name for names in _CHANNELS.findall(text) for name in names if name}
    receivers, lines = ("|".join(sorted(names)) or "(?!)" for names in (clients | modules, channels))
    sends = rf"(?<![.\w])(?:{'|'.join(sorted(called)) or '(?!)'})\(|\b(?:{receivers})\.{_SENDING}\(|\b(?:(?:{lines})(?:\.\w{{1,40}}){{1,4}}[( ]|(?:Fprint\w*|fwrite|fputs|WriteString)\(\s?\$?(?:{lines})\b)"
    return frozenset(clients | channels), lazy_compile(sends) if clients or modules or called or channels else None


def _function_of(text: str, at: int, functions: Mapping[str, re.Match[str]]) -> re.Match[str] | None:
    """The function in which the statement at `at` stands: the last one before it that begins further left."""
    last = max((hit for hit in functions.values() if hit.start() < at), key=re.Match.start, default=None)
    if last is None:
        return None
    begins = [text.rfind("\n", 0, place) + 1 for place in (last.start(), at)]
    own, inner = (len(line) - len(line.lstrip()) for line in (text[begin : begin + 200] for begin in begins))
    return last if own < inner else None


def _hosts(text: str) -> frozenset[str]:
    return frozenset((*ADDRESS.findall(text), *(name for pair in _HOST.findall(text) for name in pair if name)))


def _sources_in(text: str) -> frozenset[re.Pattern[str]]:
    """The patterns that match somewhere in the text."""
    low = text.lower()
    possible = (source for source in _SOURCES if any(word in low for word in _NEEDLES.get(source, ("",))))
    return frozenset(source for source in possible if source.search(text))


def _read(
    text: str,
    sources: Collection[re.Pattern[str]],
    own: set[str],
    listed: set[str],
    constants: Mapping[str, str],
    other: re.Pattern[str] | None,
) -> frozenset[_Secret]:
    """The secrets that a statement reads; `sources` are the patterns that match in its file, `constants` names of
    secrets in variables, `other` values by another name of the environment."""

    def search(source: re.Pattern[str]) -> re.Match[str] | None:
        return source.search(text) if source in sources else None

    secrets, tokens = set(), tokens_read(text)
    token = tokens[0][0] if len(tokens) == 1 else ""
    for hit in other.finditer(text) if other else ():
        secrets.add(_Secret(hit["name"] or "", bool(_AUTH.search(text, max(hit.start() - 160, 0), hit.start()))))
    for hit in _VALUE.finditer(text) if _VALUE in sources else ():
        name = next(filter(None, hit.groups()))
        before = text[text.rfind("\n", 0, hit.start()) + 1 : hit.start()] if hit["shell"] else ""
        is_verbatim = "(" not in before and open_mark(before) == "'"  # a shell fills nothing between single quotes
        is_asked = _ASKED.match(text, hit.end()) or (
            _IF.search(text, max(hit.start() - 40, 0), hit.start()) and _ELSE.match(text, hit.end())
        )
        if name not in own and "PUBLIC" not in name and not is_verbatim and not is_asked:
            secrets.add(_Secret(name, bool(_AUTH.search(text, max(hit.start() - 160, 0), hit.start()))))
    if _IMAGE.search(text):
        secrets |= {_Secret(hit["name"]) for hit in _SHOWN_VALUE.finditer(text) if hit["name"].isupper()}
        secrets |= {_Secret("")} if _SHOWN_FILE.search(text) else set()
    if ring := search(_KEYRING):
        service = next((service for beginning, service in _RINGS.items() if ring[0].startswith(beginning)), "")
        secrets.add(_Secret(service, bool(_AUTH.search(text, 0, ring.start())), token))
    if search(_COMPUTED):
        named = [constants[name] for name in _NAME.findall(text) if name in constants]
        secrets |= {_Secret(name) for name in (*_QUOTED.findall(text), *listed, *named) if name.isupper()}
    store = search(SHELL_STORE) or search(_HELD_FILE)
    is_key = store and _KEY_OPTION.search(text, max(store.start() - 120, 0), store.start())  # only to sign in with
    if (store and not is_key) or search(ENVIRONMENT) or search(_ALL):
        secrets.add(_Secret("", token=token))
    if dotenv := search(_DOTENV):
        secrets |= {_Secret(name) for name in _WORD.findall(dotenv[0])} or {_Secret("")}
    return frozenset(secrets)


_KEY_OPTION = lazy_compile(
    r"(?:\s-i\s*|IdentityFile[ =]|--key[ =]|--cert[ =]|--netrc-file[ =]|ssh-keygen[^\n]{0,80}|chmod\s[^\n]{0,20}|ssh-add\s{1,4})[\"']?\S{0,20}$"
)


# Around a value of which only is asked whether it is there
_ASKED = lazy_compile(r"[\"'\])]{0,3}\s?\?(?![?.])\s?[\"'\d]")
_IF = lazy_compile(r"\bif\s(?:not\s)?(?:os\.)?$")
_ELSE = lazy_compile(r"[\"'\])]{0,3}\selse\b")
_STARTS = lazy_compile(r"\b(?:subprocess\.\w+|Popen|spawn\w*|exec\w*|create_subprocess_\w+)\(")
_KEYWORD = lazy_compile(r"(?<!\w)env\s?[=:]")


def _carried(text: str, name: str, secrets: frozenset[_Secret]) -> frozenset[_Secret]:
    """The secrets of `name` as this statement uses it; one that stands in a header only signs in."""
    used = [hit.start() for hit in _NAME.finditer(text) if hit[0] == name]
    if _STARTS.search(text):  # the environment of a program that it starts
        used = [at for at in used if not _KEYWORD.search(text, max(at - 12, 0), at + len(name) + 2)]
        if not used:
            return frozenset()
    return _signing_in(secrets) if all(_AUTH.search(text, max(at - 160, 0), at) for at in used) else secrets


def _named(name: str, secrets: frozenset[_Secret], clients: frozenset[str]) -> frozenset[_Secret]:
    """The secrets that a name gets; those of a client and of a name like `headers` sign in."""
    return _signing_in(secrets) if name in clients or _HEADER_NAME.search(name) else secrets


def _signing_in(secrets: frozenset[_Secret]) -> frozenset[_Secret]:
    return frozenset(secret._replace(signs_in=True) for secret in secrets)


def _judged(text: str, secrets: frozenset[_Secret], hosts: frozenset[str], about: str) -> str:
    """What is to be told of a statement that sends secrets; empty for one that only does what honest skills do."""
    away = sorted(host.lower() for host in hosts if not LOCAL.search(host))
    if hosts and not away:
        return ""
    public, image = _PUBLIC.search(text), _IMAGE.search(text)
    for secret in sorted(secrets):
        shown = f"{secret.name!r}" if secret.name else "a file of credentials, the keyring or the environment"
        if public:
            before, after = text[: public.start()], text[public.start() :]
            if secret.signs_in or (secret.name and secret.name in before and secret.name not in after):
                continue  # it signs in, or is only set for the command
            return f"a secret reaches a comment or a commit that others read: {shown}"
        known = hosts_of(secret.token) if secret.token else None
        strangers = [host for host in away if not (known.search(host) if known else _is_own(secret.name, host, about))]
        if image and strangers:
            return f"a secret reaches the address of an image: {shown}"
        if not secret.name:
            if not secret.signs_in and not image and (strangers or (not away and text.count("\n") < FEW)):
                place = repr(strangers[0]) if strangers else "an unknown address"
                return f"a secret may be sent to {place}: {shown}"
        elif strangers and (_WIDE.search(secret.name) or not secret.signs_in):
            return f"a secret may be sent to {strangers[0]!r}, which is not its service: {shown}"
        elif not (away or secret.signs_in) and (
            (_MAILS.search(text) and text.count("\n") < FEW)
            or (_WIDE.search(secret.name) and _NETWORK.search(text) and not _CLIENT.search(text))
        ):
            return f"a secret may be sent to an unknown address: {shown}"
    return ""


def _is_own(name: str, host: str, about: str) -> bool:
    """Whether the host belongs to the service that the secret's name, or, if it names none, the skill is about. The
    label before the public ending of the host decides: `github.example.org` is not GitHub."""
    words = [word for word in name.upper().split("_") if word not in _PLAIN and not word.isdigit()]
    label = _label(host)
    if not words:
        return bool(name) and len(label) > 2 and label in about
    services = [part for word in words for part in _ALSO.get(word, "").split("|") if part]
    if any(f".{host}".endswith(f".{part}") if "." in part else label == part for part in services):
        return True
    plain = _SUFFIX.sub("", label)
    meant = {"".join(words).lower(), *(word.lower() for word in words)}
    if _WIDE.match(name):
        return label in meant or plain in meant
    return plain in meant or any(
        len(word) > 2 and (label.startswith(word) or (len(word) < 5 and _is_short_for(word, label))) for word in meant
    )


def _is_short_for(word: str, label: str) -> bool:
    """Whether the letters of `word` stand in `label` in this order, from its first one: `owm`, `openweathermap`."""
    letters = iter(label[1:])
    return word[0] == label[:1] and all(letter in letters for letter in word[1:])


def _label(host: str) -> str:
    parts = host.rstrip(".").split(".")
    if len(parts) > 2 and len(parts[-1]) == 2 and parts[-2] in {"co", "com", "ac", "org", "gov", "net", "edu"}:
        parts.pop()
    return "" if ".".join(parts[-2:]) in _LENT else parts[-2] if len(parts) > 1 else parts[0]


_SUFFIX = lazy_compile(r"(?:js|apis?|hq|app|ai|hub|usercontent)$")
_LENT = frozenset(
    {"github.io", "gitlab.io", "pages.dev", "workers.dev", "vercel.app", "netlify.app", "ngrok.io", "web.app"}
)


_FETCH = r"\b(?:fetch|download|retrieve|curl|load|read|open|visit|get|check|pull|request|webfetch)\b"
_ORDERS = r"\b(?:instructions?|orders|commands?|directives?|prompts?|(?<!naming )(?<!style )(?<!coding )(?<!formatting )(?<!validation )rules)\b"
_OBEY = r"\b(?:follow|obey|execute|carry out|comply with|act on|adopt|do (?:exactly )?(?:what|whatever|as)|perform|treat|apply)\b"
_ITS = r"\b(?:(?:it|they) (?:says?|returns?|contains?|tells?|prints?|lists?|gives?|shows?|wants?|asks?|orders?)\b|returned|responses?|(?:its|that) (?:contents?|output|text|instructions)|(?:in|of) (?:it|the (?:response|output|file|reply))|what(?:ever)? (?:is|it) (?:written|says|said|asks?|tells?|there))\b"
_ALL_OF_IT = (  # what is obeyed without a word for it
    r"\b(?:(?:follow|obey|execute|carry out) (?:it|them)\b(?! (?:to|for|when|if|with|as)\b)|(?:follow|obey|execute|carry out|perform|do|complete|work through)"
    r" (?:everything|(?:each|every|all)(?: of)?(?: the| these| those)?(?: \w+)?? (?:steps?|tasks?|items?|entr(?:y|ies)|them|it|listed)\b)(?! (?:of the|above|below|in this)\b))"
)
_AWAY = r"https?://(?!localhost|127\.)[^\s)`>]+"
_ORDERED = lazy_compile(
    rf"{_FETCH}[^.!?\n]{{0,160}}https?://[^\s)`>]+[^\n]{{0,240}}?{_OBEY}[^.!?\n]{{0,80}}(?:{_ORDERS}|{_ITS})"
    rf"|(?:{_FETCH}|\b(?:tasks?|steps|to-?dos?|work)\b)[^.!?\n]{{0,160}}{_AWAY}[^\n]{{0,120}}?{_ALL_OF_IT}"
    rf"|{_FETCH}[^.!?\n]{{0,80}}{_ORDERS}[^.!?\n]{{0,60}}https?://[^\s)`>]+[^\n]{{0,120}}?{_OBEY}"
    rf"|{_FETCH}[^.!?\n]{{0,160}}https?://[^\s)`>]+(?:[^\n]{{0,120}}\n){{1,3}}[^\n]{{0,80}}?{_OBEY}[^.!?\n]{{0,60}}{_ITS}"
    rf"|{_ORDERS}[^.!?\n]{{0,40}}https?://[^\s)`>]+[^\n]{{0,80}}?(?:\b(?:obey|follow (?:them|it)|execute (?:them|it)|comply)\b|{_OBEY}[^.!?\n]{{0,60}}{_ITS})"
    rf"|https?://[^\s)`>]+[^\n]{{0,160}}?\b(?:treat|regard|consider|take)\b[^.!?\n]{{0,80}}\bas\b[^.!?\n]{{0,30}}{_ORDERS}"
    rf"|\b(?:follow|obey|execute|comply with|act on|do)\b[^.!?\n]{{0,40}}\b(?:whatever|orders|commands|directives)\b[^.!?\n]{{0,60}}https?://(?!docs\.|[\w.]*/docs)"
    r"|(?:获取|下载|读取|访问|打开|抓取|请求|拉取)[^。\n]{0,80}https?://[^\s，。]+[^\n不勿]{0,80}?(?<!无需)(?:按照|遵循|遵守|执行|照做|服从|依照|照着|按其)",
    re.IGNORECASE,
)
_PRINTED = lazy_compile(  # a script of the skill
    r"\b(?:run|execute|call|start)\b[^.\n]{0,40}?(?P<file>[\w./-]{1,80}\.\w{1,4})\b[^.\n]{0,40}\b(?:do|obey|follow|execute|carry out)\b[^.\n]{0,30}?\b(?:what(?:ever)?|everything|(?:each|every|all)\b[^.\n]{0,20}) (?:that )?it (?:prints|returns|says|outputs|shows|lists|tells)",
    re.IGNORECASE,
)
_MANUAL = lazy_compile(  # a page of documentation, not a text for agents
    r"https?://(?:docs?|developers?|help|learn|support)\.[^\s)`>]*(?:llms[\w-]{0,9}\.txt|(?<!\.md)(?<!\.txt)(?<!\.json))(?=[\s)`>]|$)|https?://[^\s)`>]{3,60}/(?:docs?|documentation|installation|guides?|manual|stable)/[^\s)`>]*(?<!\.md)(?<!\.txt)(?<!\.json)(?=[\s)`>]|$)",
    re.IGNORECASE,
)
_SHELL_NAME = lazy_compile(r"\$\{?(\w+)")
_LOCKED = lazy_compile(
    r"\bunzip\b[^\n]{0,120}\s-P\s?\S+|\b7z\w{0,2}\s+[xe]\b[^\n]{0,120}\s-p\S+|\bunrar\b[^\n]{0,120}\s-p\S+|--passphrase[ =]\S+[^\n]{0,80}(?:\.(?:zip|7z|rar)|\s-d\b|--decrypt\b)|(?:extractall|setpassword|ZipFile\.open)\([^)\n]{0,120}(?:pwd\s?=(?!\s?(?:sys\.argv|args\b|getpass|input\())|b[\"'])"
    r"|\b(?:SevenZipFile|AESZipFile|RarFile)\([^)\n]{0,120}password\s?=\s?[\"']|\bopenssl\s(?=[^\n|;&]{0,160}\s-d\b)[^\n|;&]{0,160}\s-(?:k|pass)\s\S+"
    r"|\.(?:zip|7z|rar)\b[^\n]{0,60}\((?:the )?(?:password|passcode|pass|pwd?|code)\b[\s:=]{1,3}\S+\)"
    r"|\b(?:download|extract|unzip|unpack|open|get)\b[\s\S]{0,240}?(?:\.zip|\.7z|\.rar|\barchive\b)[\s\S]{0,240}?\bpass(?:word|code|phrase)?\b[^\n]{0,12}?(?:\bis\b|[\"'`:=(])\s?\S+"
    r"|\bpass(?:word|code|phrase)\b[^\n]{0,12}?(?:\bis\b|[\"'`:=(])\s?\S+[^\n]{0,120}(?:\.zip|\.7z|\.rar|\barchive\b)"
    r"|(?:下载|解压|打开)[^\n]{0,120}(?:\.zip|\.7z|\.rar|压缩)?[^\n]{0,120}(?:解压)?密码\S{0,4}?(?:[：:`]|是|为)\s?\S+",
    re.IGNORECASE,
)
_PROGRAM = lazy_compile(
    r"\.(?:exe|msi|scr|bat|cmd|ps1|dmg|pkg|app|jar|sh|bin|run|appimage)\b|chmod\s+\+?\w*x|(?:^|[\s;&|\"'])\./[\w.-]+|&&\s?\w[\w-]*/[\w.-]+|\b(?:Popen|startfile|start-process|os\.system|spawn\w*|exec\w*)\b|\b(?:run|execute|launch|start|double-click)\b|运行|执行|启动|双击",
    re.IGNORECASE,
)
_PACKAGE = lazy_compile(
    r"\b(?:npx|bunx|bun x|pnpx|pnpm (?:-\S{1,40}\s){0,4}dlx|yarn dlx|uvx|pipx run|npm exec|npm x|uv tool run|gem exec|dnx)\s+(?:-{1,2}[\w-]*(?:=\S+)?\s+)*?(?:-y\s+|--yes\s+)?(?P<line>@?[a-z0-9][\w./@+:-]+)"
    r"|\bdeno run\s(?:-\S{1,60}\s){0,8}(?:npm:|jsr:|https://)(?P<deno>@?[a-z0-9][\w./@-]+)|(?<=\s--with[ =])(?P<with>[a-z0-9][\w./@+:-]+)"
    r"|\bgo run (?P<go>[\w-]+\.[a-z]{2,9}/[\w./@-]+)|\bnix run (?P<nix>github:[\w./-]+)"
    r"|[\"'](?:npx|bunx|uvx|pnpm|dlx)[\"'][\s,]*(?:[\"']?args[\"']?\s*[:=]\s*)?\[?\s*(?:[\"'](?:dlx|-{1,2}[\w-]+)[\"']\s*,\s*)*[\"'](?P<json>@?[a-z0-9][\w./@-]+)[\"']"
    r"|\bcommand:\s?[\"']?(?:npx|bunx|uvx)[\"']?\s{0,20}\n\s{1,20}args:[\s\[-]{1,40}(?:[\"']?-{1,2}\w{1,20}[\"']?[\s,-]{1,40}){0,4}[\"']?(?P<yaml>@?[a-z0-9][\w./@-]+)"
    r"|\bdocker run\s[^\n]{0,200}?(?<=\s)(?P<image>(?:ghcr\.io/|docker\.io/|quay\.io/)?[a-z0-9][\w-]*/[\w./-]+)"
    r"|[\"']docker[\"'][\s,]*[\"']?args[\"']?\s?:\s?\[\s?[\"']run[\"'][^\]\n]{0,300}?[\"'](?P<shipped>[\w.-]+/[\w./-]+)(?::[\w.-]+)?[\"']\s?\]"
)
_GETS = lazy_compile(
    rf"[\"']?(?P<name>\b[A-Z][A-Z0-9_]{{0,80}})[\"']?\s?[:=]|\$\{{?(?P<used>{_IS_SECRET})\b|--(?P<option>[\w-]{{0,60}}(?:token|secret|password|api-?key))[ =]|(?:\s-e|--env)[ =](?P<given>{_IS_SECRET})\b",
    re.ASCII,
)
_KNOWN_SCOPE = lazy_compile(
    r"@(?:modelcontextprotocol|anthropic-ai|openai|google|google-cloud|googleapis|github|microsoft|azure|playwright|vercel|supabase|cloudflare|aws-sdk|awslabs|"
    r"sentry|notionhq|stripe|hubspot|salesforce|shopify|upstash|figma|linear|prisma|mongodb-js|elastic|angular|vue|types|semantic-release|changesets|sanity|expo|railway)/"
    r"|(?:deno\.land/std|golang\.org|google\.golang\.org|cloud\.google\.com|k8s\.io|github\.com/(?:cli|golang|google|hashicorp|aws|grafana|goreleaser|anchore|aquasecurity))[/@]|github:(?:NixOS|nixos)/"
    r"|@(?:supabase|std|deno|openai)/|(?:openai|anthropic|requests|httpx|aiohttp|rich|typer|click|pydantic|boto3|awscli|huggingface[-_]hub|transformers|datasets|google-(?:genai|generativeai)|litellm|langchain[\w-]*|mcp|fastmcp"
    r"|pandas|numpy|python-dotenv|pyyaml|playwright|pytest|ruff|black|mypy|slack[-_]sdk|pygithub|stripe|notion-client|yt-dlp|llm|aider-chat|gh|firebase)(?:\[[\w,]+\])?(?:[@=<>~]|$)"
    r"|(?:mcp|ghcr\.io/github|hashicorp|grafana|semgrep|aquasec|amazon|bitnami|(?:mcr\.microsoft\.com|gcr\.io|public\.ecr\.aws)/\w+)/"
    r"|(?:wrangler|vercel|netlify(?:-cli)?|firebase-tools|semantic-release|supabase|prisma|tsx|ts-node|npm|pnpm|expo|eas-cli|serverless|cdk|playwright|lerna|"
    r"twine|poetry|hatch|(?:ghcr\.io/)?renovate/renovate|vsce|ovsx|release-it|convex|drizzle-kit|mcp-remote|shadcn|create-[\w-]+)(?:@|$)"
)


_TOLD_SOURCE = (
    r"(?:~|\$HOME|\.)?/?\.(?:ssh|aws|netrc|npmrc|pypirc|kube|docker|gnupg|git-credentials|config/gh)\b\S{0,30}|(?<![\w.])\.env\b(?!\.example)"
    r"|\bopenclaw\.json\b|\.(?:openclaw|clawdbot|moltbot)/\S{0,20}(?:\.env\b|credentials)|\benvironment variables?\b|\boutput of `?(?:env|printenv)\b|\bkey(?:chain|ring)\b|(?-i:\b[A-Z]{2,}_(?:API_KEY|TOKEN|SECRET\w*)\b)|环境变量|钥匙串|\.ssh|id_rsa"
)
_TOLD_SENDS = r"\b(?:send|post|upload|include|append|attach|paste|embed|submit|report|add|encode|write|transmit|forward|share|put)\b|\bpass (?:it|them|(?:all|every|the|its|their) (?:values?|contents?|keys|text))\b|发送|上传|附上|附加|贴到|写入|提交"
_TOLD_TO = (
    r"https?://(?!localhost|127\.)[\w.-]+|\b(?:PR|pull request|issue|review)\b[^.\n]{0,30}\b(?:comments?|body|description)\b|\bcomments?\b[^.\n]{0,30}\b(?:PR|pull request|issue)\b"
    r"|\b(?:new|open|create|file|an) (?:an? )?(?:issue|discussion|pull request)\b[^.\n]{0,40}|\bgist\b|\bwebhook\b|\bimage (?:url|address|link)\b|图片地址|评论|拉取请求|合并请求"
)
_FILES = (
    r"(?:~|\$HOME|\.)?/?\.(?:ssh/(?!\S{0,40}\.pub|config\b|known_hosts)|aws/|netrc|npmrc|pypirc|kube/|docker/|gnupg|git-credentials|config/gh|cursor/mcp\.json|claude/\.credentials|openclaw/openclaw\.json|(?:openclaw|clawdbot|moltbot)/(?:\.env|credentials))[\w./`-]{0,30}+"
    r"|(?<![\w.])\.env\b(?!\.example|\.sample|\.template)|\bid_(?:rsa|ed25519)\b(?!\.pub)|\b(?:env|printenv)`"
)
_CONTENTS = r"\b(?:contents?|values?|text|output)\s(?:of|from)\s(?:the\s|your\s)?[`\"'$]{0,2}"
_CONTENT = rf"(?:{_CONTENTS}(?:{_FILES}|(?-i:\$?\b[A-Z]{{2,}}_(?:API_KEY|TOKEN|SECRET\w*)\b))|[`\"']?(?:{_FILES}))"
_READERS = (  # where others read it
    r"#[\w-]+ \w{0,9} ?channel|\b(?:slack|discord|teams|telegram)\b[^.;\n]{0,12}\b(?:channel|message|tool|chat)\b|\bcommit (?:message|body|description)|\be-?mails?\b|[\w.]+@[\w-]+\.\w|\b(?:branch|tag|repo(?:sitory)?) names?\b"
    r"|\btickets?\b|\b(?:PR|pull request|issue|review)(?: comment| body| description)?\b|\bcomments?\b|\bgist\b"
)
_GAP = r"(?:[^\n]|\n(?!\n)){0,200}?"  # within a paragraph
_TOLD_AWAY = (
    r"\b(?:send|post|upload|include|append|attach|paste|embed|transmit|forward|share)\b|发送|上传|附上|附加|贴到"
)
_TOLD_ASKS = r"\b(?:call|request|visit|open|ping|query|post|get|fetch|send|create|make|write|leave|file|curl|links?|points?)\b|访问|请求|调用|打开|创建|发表"
_TOLD = lazy_compile(
    rf"(?:{_TOLD_SOURCE}){_GAP}(?:{_TOLD_SENDS}){_GAP}(?:{_TOLD_TO})"
    rf"|(?:{_TOLD_ASKS})[^.\n]{{0,60}}(?:{_TOLD_TO})[^\n]{{0,120}}?(?:\b(?:with|including|containing|contains|holding|passing|having|that (?:has|holds|shows)|plus|put|paste|include|followed by|ending in|and then)\b|附带|带上|包含|写入)[^.;\n]{{0,60}}?(?<!\b(?:in|to) `)(?<!\b(?:in|to|as) )(?<!\binto )(?<!\binto `)(?:{_TOLD_SOURCE})"
    rf"|(?:{_TOLD_AWAY})[^\n]{{0,160}}?(?:{_TOLD_SOURCE})[^.;\n]{{0,80}}?(?:\b(?:to|into|in|on|as|at)\b|到|至|作为|给)[^.;\n]{{0,40}}?(?:{_TOLD_TO})"
    rf"|\b(?:send|post|upload|include|append|attach|paste|embed|share|pass|add|put|insert|write|copy)\b[^.;\n]{{0,40}}?{_CONTENT}[^.;\n]{{0,40}}?\b(?:to|into|in|on|at|via|with)\b[^.;\n]{{0,40}}?(?:{_READERS})"
    rf"|\b(?:pass|put|send|include|give|supply|use|copy|write|add)\b[^.;\n]{{0,40}}?{_CONTENTS}(?:{_FILES})[^.;\n]{{0,20}}?\b(?:as|in|into|to)\b[^.;\n]{{0,30}}?\b(?:parameter|argument|field)\b"
    rf"|(?:{_FILES})[^\n]{{0,80}}?\b(?:pass|put|send|include|give|supply|use|copy|write|add)\b[^.;\n]{{0,10}}?\b(?:its|their|the)\s(?:contents?|text|values?)\b[^.;\n]{{0,20}}?\b(?:as|in|into|to)\b[^.;\n]{{0,30}}?\b(?:parameter|argument|field)\b"
    rf"|\b(?:parameter|argument|field)\b[^.;\n]{{0,40}}?\b(?:with|to|from)\b[^.;\n]{{0,10}}?{_CONTENTS}(?:{_FILES})"
    rf"|\b(?:name|call|title)\b[^.;\n]{{0,30}}?\b(?:branch|tag|repo(?:sitory)?|issue|commit)\b[^.;\n]{{0,20}}?\b(?:after|with|by|from|like)\b[^.;\n]{{0,10}}?{_CONTENT}"
    rf"|\b(?:send|write|compose|draft)\b[^.;\n]{{0,20}}\be-?mails?\b[^;\n]{{0,80}}?\b(?:with|attach\w*|contain\w*|includ\w*)\b[^.;\n]{{0,30}}?(?:{_CONTENT})",
    re.IGNORECASE,
)


_HELPER = lazy_compile(
    r"\bcredential\.(?:\S{0,80}\.)?helper[\"']?[\s=]{1,3}[\"']?!(?=[^\n]{0,300}\b(?:curl|wget|nc|ncat|socat)\b)|^\s{0,8}helper\s?=\s?[\"']?!(?=[^\n]{0,300}\b(?:curl|wget|nc|ncat|socat)\b)",
    re.MULTILINE,
)
_TALK = r"(?:\b(?:conversations?|chat (?:history|log)|transcript|(?:previous|earlier|all|user'?s) (?:messages?|prompts?|questions?))\b|对话|聊天记录|用户的?(?:消息|问题))"
_FILLED = r"(?:\b(?:where|with|replac\w+|fill\w*|insert\w*|encod\w+|substitut\w+|append\w*|put)\b|替换|填入|编码|换成)"
_DRAWN = r"!\[[^\]\n]{0,80}\]\(\s?<?https?://[^\s)?]{1,200}[?/][^\s)]{0,200}?(?:[<{\[$]|[=/][A-Z][A-Z_]{2,})"
_SPOKEN = rf"(?:{_FILLED}[^\n]{{0,120}}?{_TALK}|{_TALK}[^\n]{{0,80}}?{_FILLED})"
_PICTURED = lazy_compile(  # the talk with the person as a part of the address of an image
    rf"{_SPOKEN}[\s\S]{{0,160}}?{_DRAWN}|{_DRAWN}[\s\S]{{0,160}}?{_SPOKEN}|(?i:{_DRAWN}[^\s)]{{0,20}}?{_TALK})"
)
# Code, and what is forbidden
_NO_ORDER = lazy_compile(
    rf"\w\((?!s\))|\w\s=\s|(?:\b(?:never|not|avoid|without)\b|n[o’']t\b|不要|不能|不得|切勿|禁止|避免)\s?(?:\w+\s){{0,2}}(?:{_TOLD_SENDS})",
    re.IGNORECASE,
)
_TOLD_NEEDLES = (".ssh", ".aws", ".netrc", ".npmrc", ".pypirc", ".kube", ".docker", ".gnupg", "git-cred", "config/gh", ".env",
    "environment var", "`env`", "printenv", "keychain", "keyring", "cursor/mcp", "claude/.cred", "openclaw.json", "clawdbot/", "moltbot/", ".openclaw/", "_api_key", "_token", "_secret", "id_rsa", "环境变量", "钥匙串")  # fmt: skip
_TRICKS = (
    (_TOLD, _TOLD_NEEDLES, "secret-leaves", "tells an agent to send secrets to others, or to write them where others read"),
    (_ORDERED, ("http",), "fetched-orders", "tells an agent to fetch a text from the network and to do what it says"),
    (_PICTURED, ("![",), "secret-leaves", "tells an agent to put what was said into the address of an image"),
    (_HELPER, ("helper",), "secret-leaves", "gives the passwords that git asks for to a program that sends them"),
    (_LOCKED, ("pass", "密码", "-p", "pwd", "(pw", "openssl"), "locked-archive", "unpacks an archive with a password, which no scanner can read, and runs what is in it"),
)  # fmt: skip
_RUNNERS = (
    "px",
    "bunx",
    "dlx",
    "uvx",
    "npm",
    "uv tool",
    "docker",
    "--with",
    "deno run",
    "go run",
    "nix run",
    "gem exec",
    "dnx",
    "bun x",
)  # a part of every command that starts a package
AROUND = 450  # characters before and after a needle in which a pattern is searched


def _near(pattern: re.Pattern[str], text: str, low: str, needles: Sequence[str]) -> Iterator[re.Match[str]]:
    """The matches near a needle, in order, so that the time grows with the needles and not with the text."""
    places = [hit.start() for hit in lazy_compile("|".join(map(re.escape, needles))).finditer(low)]
    done = 0
    for at in places[:WINDOWS]:
        if at + AROUND // 2 < done:
            continue
        end = min(at + AROUND, len(text))
        for hit in pattern.finditer(text, max(at - AROUND, done if done <= at else 0, 0), end):
            yield hit
            done = hit.end()
        done = max(done, end)


WINDOWS = 150  # windows of one file


_BASE_URL = lazy_compile(
    r"\b(?P<service>ANTHROPIC|OPENAI)_(?:BASE_URL|API_BASE)[\"']?\s?[:=]\s?[\"']?(?P<address>https?://[\w-][\w.-]{2,200})"
)


def _tricks(text: str, texts: Mapping[str, str]) -> Iterator[tuple[str, int, str]]:
    """Orders that are fetched, archives with a password and a program, packages of strangers that get a token."""
    low = text.replace("İ", "i").lower()  # the one letter that is two characters in lower case
    for pattern, needles, code, message in _TRICKS:
        for hit in _near(pattern, text, low, needles):
            name, hosts = next(iter(_WORD.findall(hit[0])), ""), ADDRESS.findall(hit[0])
            is_own = hosts and name and all(_is_own(name, host.lower(), "") for host in hosts)
            is_harmless = pattern is _TOLD and (is_own or _NO_ORDER.search(hit[0]))
            is_manual = pattern is _ORDERED and len(hosts) == len(_MANUAL.findall(hit[0]))
            variable = _SHELL_NAME.search(hit[0]) if pattern is _LOCKED else None
            # a variable that the text does not set holds the person's own password
            is_asked = variable and not lazy_compile(rf"\b{variable[1]}=[\"']?\w").search(text)
            is_data = pattern is _LOCKED and not _PROGRAM.search(text, max(hit.start() - 400, 0), hit.end() + 600)
            begin = max(text.rfind("\n", 0, hit.start()) + 1, hit.start() - 120)
            if not (_FORBIDS.search(text, begin, hit.start()) or is_harmless or is_data or is_manual or is_asked):
                yield code, hit.start(), message
    for hit in _BASE_URL.finditer(text) if "_base" in low else ():  # a client of the service sends its key there
        key, (host,) = f"{hit['service']}_API_KEY", ADDRESS.findall(hit["address"])
        # then it is set to the key of the other service
        is_set = lazy_compile(rf"{hit['service']}_(?:API_KEY|AUTH_TOKEN)").search(text)
        if not (is_set or LOCAL.search(host) or _is_own(key, host.lower(), "")):
            yield "secret-leaves", hit.start(), f"a secret may be sent to {host!r}, which is not its service: {key!r}"
    for hit in _PRINTED.finditer(text) if " it " in low else ():
        if any(hit["file"].endswith(path) and _NETWORK.search(script) for path, script in texts.items()):
            yield "fetched-orders", hit.start(), _TRICKS[1][3]
    for hit in _PACKAGE.finditer(text) if any(word in low for word in _RUNNERS) else ():
        package = next(filter(None, hit.groups()))
        if _KNOWN_SCOPE.match(package):
            continue
        if hit["json"] or hit["yaml"] or hit["shipped"]:
            around = text[hit.start() : hit.end() + 400]
        else:
            begin, end = text.rfind("\n", 0, hit.start()) + 1, text.find("\n", hit.end())
            while begin and (before := text[text.rfind("\n", 0, begin - 1) + 1 : begin]).lstrip().startswith("export "):
                begin -= len(before)
            around = text[begin : end if end >= 0 else len(text)]
        names = [next(filter(None, secret.groups()), "").upper().replace("-", "_") for secret in _GETS.finditer(around)]
        if any(_WHOLE.fullmatch(name) and not _is_of_package(name, package.lower()) for name in names):
            message = f"gives a secret to a package that it fetches without asking: {package!r}"
            yield "package-gets-secret", hit.start(), message


def _is_of_package(name: str, package: str) -> bool:
    """Whether the package is of the service that the secret is for, as far as names say; the secrets that many people
    have are only for packages of known owners."""
    words = [word for word in name.split("_") if word not in _PLAIN and not word.isdigit()]
    return not _WIDE.match(name) and any(len(word) > 2 and word.lower() in package for word in words)


_FORBIDS = lazy_compile(
    r"\b(?:never|not|n[o’']t|avoid|refuse|reject|beware|warn\w*|if)\b[^.!?\n]{0,60}$|(?:切勿|不要|禁止|避免|不得)[^。\n]{0,30}$",
    re.IGNORECASE,
)
