"""Texts of several kinds and scripts, written for counting."""

# ruff: noqa: E501, RUF001 - texts of many scripts, some of them without spaces to break a line at
from __future__ import annotations

TEXTS = {
    "english": """A try square tells whether a corner is true. You lay it against the wood, look at the light between the
two, and know at once. A tool layer does the same for an agent: it shows what can be done, refuses what cannot, and says in
plain words why. Nobody should need to read a manual before the first call succeeds. When a call fails, the answer names the
argument, the value that was expected, and the call that would have worked. Most of the time the next try is right.""",
    "markdown": """# Setting up

1. Install the package: `pip install trysquare`.
2. Write a file `tools.py` with your **first tool**.
3. Run `trysquare serve --tools tools:tools` and connect a client.

| option | meaning |
|---|---|
| `--http` | serve over HTTP at `/mcp` |
| `--profile levels` | list fewer tools |

> Binding to anything but loopback needs authentication.
""",
    "python": '''from dataclasses import dataclass


@dataclass(frozen=True)
class Point:
    """A place on the map."""

    x: float
    y: float

    def distance_to(self, other: "Point") -> float:
        return ((self.x - other.x) ** 2 + (self.y - other.y) ** 2) ** 0.5


def nearest(points: list[Point], origin: Point) -> Point | None:
    return min(points, key=lambda point: point.distance_to(origin), default=None)
''',
    "javascript": """export async function fetchUser(userId, { retries = 3, timeoutMs = 5000 } = {}) {
  for (let attempt = 0; attempt < retries; attempt += 1) {
    const response = await fetch(`/api/users/${userId}`, { signal: AbortSignal.timeout(timeoutMs) });
    if (response.ok) return response.json();
    if (response.status !== 503) throw new Error(`Request failed: ${response.status}`);
  }
  throw new Error("Service unavailable");
}
""",
    "json": """{"name":"create_event","description":"Put an appointment into the calendar.","input_schema":{"type":"object",
"properties":{"title":{"type":"string","description":"What it is"},"start":{"type":"string","format":"date-time"},
"guests":{"type":"array","items":{"type":"string"},"default":[]},"remind":{"type":"integer","minimum":0,"maximum":1440}},
"required":["title","start"],"additionalProperties":false}}""",
    "indented json": """{
  "servers": {
    "files": {
      "command": "trysquare",
      "args": ["serve", "--workbench", "."],
      "env": {
        "LOG_LEVEL": "debug"
      }
    }
  }
}
""",
    "identifiers": """getUserProfileById max_retry_count HTTPRequestHandler __init__ snake_case_name kebab-case-name
XMLParserFactory sessionTokenExpiry DEFAULT_TIMEOUT_SECONDS user.profile.settings.theme_color parseJSONResponse""",
    "numbers": "2026-05-31T12:45:00Z 3.14159265 1,000,000 192.168.0.1 +49 30 1234567 0xDEADBEEF 42% 1e-9 v2.14.3",
    "log": """2026-05-31 12:45:03,117 INFO trysquare.call greet: VALIDATION_MISSING_PARAM
2026-05-31 12:45:04,002 ERROR trysquare.call Tool greet crashed (incident 5f2c9a1b)
Traceback (most recent call last):
  File "/srv/app/tools.py", line 42, in greet
    raise ValueError("no name")
ValueError: no name
""",
    "german": """Ein Anschlagwinkel zeigt, ob eine Ecke stimmt. Man legt ihn an das Holz, schaut auf den Spalt und weiß sofort,
woran man ist. Genauso sollte ein Werkzeug für Agenten arbeiten: Es zeigt, was möglich ist, lehnt Unmögliches ab und erklärt
in klaren Worten, warum. Schlägt ein Aufruf fehl, nennt die Antwort das Argument und den erwarteten Wert.""",
    "french": """Une équerre montre si un angle est juste. On la pose contre le bois, on regarde la lumière entre les deux et
l'on sait aussitôt. Un bon outil fait de même pour un agent : il montre ce qui est possible, refuse le reste et dit pourquoi
avec des mots simples. Quand un appel échoue, la réponse nomme l'argument et la valeur attendue.""",
    "spanish": """Una escuadra muestra si una esquina es recta. Se apoya en la madera, se mira la luz que queda y se sabe
enseguida. Una buena herramienta hace lo mismo para un agente: muestra lo que se puede hacer, rechaza lo demás y explica el
motivo con palabras sencillas. Si una llamada falla, la respuesta nombra el argumento y el valor esperado.""",
    "polish": """Kątownik pokazuje, czy narożnik jest prosty. Przykładasz go do drewna, patrzysz na światło i od razu wiesz.
Dobre narzędzie robi to samo dla agenta: pokazuje, co można zrobić, odrzuca resztę i wyjaśnia prostymi słowami dlaczego.""",
    "russian": """Угольник показывает, верен ли угол. Его прикладывают к дереву, смотрят на свет и сразу понимают. Хороший
инструмент делает то же самое для агента: показывает, что можно сделать, отклоняет остальное и простыми словами объясняет
причину. Если вызов не удался, ответ называет аргумент и ожидаемое значение.""",
    "greek": """Η γωνία δείχνει αν μια γωνία είναι σωστή. Την ακουμπάς στο ξύλο, κοιτάς το φως και ξέρεις αμέσως. Ένα καλό
εργαλείο κάνει το ίδιο για έναν πράκτορα: δείχνει τι μπορεί να γίνει και εξηγεί με απλά λόγια το γιατί.""",
    "arabic": """تُظهر الزاوية القائمة ما إذا كان الركن صحيحًا. تضعها على الخشب وتنظر إلى الضوء فتعرف على الفور. الأداة الجيدة تفعل
الشيء نفسه للوكيل: تعرض ما يمكن فعله وترفض الباقي وتشرح السبب بكلمات بسيطة.""",
    "hebrew": """הזוויתן מראה אם הפינה ישרה. מניחים אותו על העץ, מסתכלים על האור ויודעים מיד. כלי טוב עושה אותו דבר עבור סוכן: הוא
מראה מה אפשר לעשות, דוחה את השאר ומסביר במילים פשוטות מדוע.""",
    "hindi": """गुनिया बताता है कि कोना सही है या नहीं। इसे लकड़ी पर रखकर रोशनी देखते हैं और तुरंत पता चल जाता है। एक अच्छा उपकरण एजेंट के
लिए यही करता है: वह दिखाता है कि क्या संभव है और सरल शब्दों में कारण बताता है।""",
    "thai": "ฉากบอกว่ามุมตรงหรือไม่ วางบนไม้แล้วดูแสงก็รู้ทันที เครื่องมือที่ดีทำแบบเดียวกันให้ตัวแทน คือแสดงสิ่งที่ทำได้และอธิบายเหตุผลด้วยคำง่าย ๆ",
    "chinese": "角尺能告诉你一个角是否准确。把它靠在木头上,看看中间的光,马上就知道了。好的工具对智能体也是这样:它显示能做什么,拒绝做不到的事,并用简单的话说明原因。如果调用失败,回答会指出参数和期望的值。",
    "japanese": "直角定規は角が正しいかどうかを教えてくれます。木に当てて隙間の光を見れば、すぐに分かります。良いツールはエージェントにも同じことをします。できることを示し、できないことは断り、その理由を簡単な言葉で説明します。",
    "korean": "직각자는 모서리가 정확한지 알려 줍니다. 나무에 대고 빛을 보면 바로 알 수 있습니다. 좋은 도구는 에이전트에게도 같은 일을 합니다. 할 수 있는 일을 보여 주고 나머지는 거절하며 그 이유를 쉬운 말로 설명합니다.",
    "symbols": "Done ✓ — 3 of 5 steps → next: “review”… • one • two ≤ 10 ≠ 0 © 2026 € 42 ½ × 2 😀 👍 🚀",
}
