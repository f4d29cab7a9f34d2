"""How ordinary a word is. Law: written by hand from general knowledge, base forms only, and about no store.

Three kinds of words. *Everyday* words may stand in any request, whatever it is about: they say nothing about
which note fits. *Work* words are the common nouns and verbs of making software, and the names of its languages:
a request and a note that share one of them may still be about different things. Every other word, and every
longer number or identifier, is *telling*. The lists are data for `weight` and nothing else. Pure. SPEC section 9.
"""

import re
from functools import lru_cache
from typing import Final

EVERYDAY_WEIGHT: Final = 0.0
WORK_WEIGHT: Final = 0.3
TELLING_WEIGHT: Final = 1.0

_EVERYDAY_TEXT: Final = """
i me my mine myself we us our ours ourselves you your yours yourself he him his himself she her hers herself it
its itself they them their theirs themselves this that these those who whom whose which what where when why how
anybody anyone anything everybody everyone everything nobody none nothing somebody someone something else other
another each every either neither both all some any few many much more most less least several enough such same
own only just even also too very quite rather really still yet already again once twice always never often
sometimes usually ever now then today tomorrow yesterday tonight soon early late ago before after during until
till since while here there everywhere anywhere somewhere away back up down out off over under above below
between among through across along around about against into onto upon within without toward towards behind
beside besides beyond near next last first second third half per via than like unlike as if unless though
although because so therefore however otherwise instead maybe perhaps probably certainly actually basically
exactly almost nearly well ok okay yes no not nor or and but yeah yep nope please pls plz thanks thank thx hello
hi hey morning afternoon evening night bye goodbye sorry sure right wrong fine great good better best bad worse
worst nice cool perfect awesome wow oh ah hm hmm lol btw fyi asap etc eg ie vs be am is are was were been being
have has had having do does did done doing will would shall should can could may might must ought need dare let
get got gotten go goes went gone going come came make made take took taken give gave given see saw seen look
seem know knew known think thought believe guess suppose want wish hope love hate prefer mean meant say said
tell told ask talk speak spoke spoken call hear heard feel felt find found keep kept put set leave left begin
began begun start stop end finish continue happen become became turn try tries tried use using work help show shown
explain describe understand understood remember forget forgot forgotten learn teach taught read write wrote
written draw bring brought buy bought pay paid sell sold send sent receive hold held carry move change add
remove delete drop create break broke broken fix repair solve run ran open close check wait watch follow lead
led allow cause require include contain consider decide choose chose chosen pick expect agree suggest recommend
offer provide support handle deal serve cover hit catch caught pass fail lose lost miss win won stay stand stood
sit sat lie lay fall fell fallen rise grow grew cut pull push throw threw raise return reach meet met join share
split compare measure matter depend belong exist appear disappear stick stuck live die kill save spend cost care
mind worry trust prove improve reduce increase replace repeat revert undo redo rename rewrite rework clean tidy
simplify sort order organize prepare plan review answer reply mention note thing stuff way kind type part piece
bit lot number amount case example point place side top bottom front middle rest whole time day week month year
hour minute moment date man men woman women person people guy friend team group company world life home house
room job question problem issue trouble reason idea word name line page story fact sense difference result step
level list form state effect chance choice advice opinion favour favor situation context detail information info
topic subject content summary overview version copy new old young big large huge small little tiny long short
high low wide deep full empty free hard soft easy simple difficult possible impossible likely certain clear
correct real true false similar different various common usual normal general special specific particular main
important necessary useful useless able available ready busy quick fast slow strong weak heavy light hot cold
warm happy sad funny strange weird odd silly stupid crazy beautiful ugly interesting boring dear honest careful
final current previous recent latest extra entire single double multiple alone together apart complete total
overall whatever whichever whoever whenever wherever anyway somehow zero one two three four five six seven eight
nine ten eleven twelve twenty thirty forty fifty hundred thousand million couple dozen pair pm monday tuesday
wednesday thursday friday saturday sunday january february march april june july august september october
november december spring summer autumn winter im ive id ill youre youve dont doesnt didnt isnt arent wasnt
werent cant cannot couldnt wont wouldnt shouldnt havent hasnt hadnt thats whats hows lets theres heres theyre
hes shes gonna wanna gotta ur dunno smth sth der das und ist nicht ich du wir ihr sie ein eine einen den dem des
mit von auf bei aus nach wie wer wo warum kann bitte danke hallo guten morgen ja nein auch noch nur schon
mal le la les une un et est pas je tu nous vous ils elle avec pour dans sur que qui quoi pourquoi merci
bonjour oui non aussi encore el los las una uno es yo nosotros con por para en como cuando porque gracias hola
si pero и в не на что это как я ты мы вы он она они с по для из у да нет привет спасибо пожалуйста можно почему
"""
_EVERYDAY: Final = frozenset(_EVERYDAY_TEXT.split())

_WORK_TEXT: Final = """
app application program project product system service server client user admin account customer web website
site url link online browser screen window button menu field tab dialog view header title label icon image
picture photo video audio text font color colour style layout design theme dark size width height margin code
coding script source function method class object module package library framework tool file folder directory
path repo repository branch commit merge rebase diff patch request pr release deploy deployment tag update
upgrade install setup config configuration setting option flag parameter argument input output value variable
constant string integer boolean array map dict dictionary tuple key index table row record column data database
db query sql schema model api endpoint response callback event message error exception warning bug crash fault
failure stack trace traceback log logging debug debugger print console terminal shell command cli prompt test
testing unit suite mock build compile compiler lint format formatter interface import export loop condition
null undefined default async await thread process task queue worker memory cache disk storage network
connection socket port host proxy http https json yaml xml html css csv pdf js javascript typescript ts python
java golang rust ruby php cpp bash linux mac macos windows docker container cloud env environment local
remote prod production staging dev development login logout password token auth permission access security
backup restore migration migrate refactor optimize performance speed timeout limit max min count sum average
random filter search regex pattern match parse parser encode decode convert conversion template component prop
hook store render router route frontend backend fullstack doc docs documentation readme comment changelog
license todo ticket feature bugfix hotfix sample demo tutorial localhost master origin head node npm pip git
github restart status enable disable edit insert select upload download ms kb mb gb
"""
_WORK: Final = frozenset(_WORK_TEXT.split())

# Chinese writes no spaces, so the terms are pairs of characters. These characters carry grammar, counting and
# the small talk of a request: a pair with one of them is everyday, it mostly joins the ends of two words.
_GRAMMAR: Final = frozenset(
    "的了是我你您他她它们这那哪个一不没有在和与或就都也还又再很太更最要会能可以把被给让对从到向跟为吗呢吧啊呀哦嗯"
    "么什怎谁几多少些之其而但因所如若则来去上下里中前后时候着过得地好请帮谢想看说做用写改加跑查找试等先然现今昨"
    "明天次点样种件条两二三四五六七八九十"
)
_EVERYDAY_PAIRS_TEXT: Final = """
继续 谢谢 多谢 感谢 辛苦 麻烦 知道 觉得 需要 可能 应该 已经 如果 所以 因为 但是 只是 东西 情况 意思 你好
您好 早上 晚上 下午 今天 明天 昨天 现在 以后 以前 之前 之后 一下 有人 大家 自己 怎么 怎样 什么 这样 那样
这里 那里 哪里 时候 开始 结束 看看 试试 帮忙 好的 可以 不要 不用 没有 不能 一样 两个 几个 一些 多少 直接
同一 顺便 简单 复杂 请问 明白 算了 可惜 안녕 녕하 하세 세요 해줘 주세 니다 습니 ます です した して ない
"""
_EVERYDAY_PAIRS: Final = frozenset(_EVERYDAY_PAIRS_TEXT.split())
_WORK_PAIRS_TEXT: Final = """
问题 代码 文件 方法 结果 检查 测试 修改 修复 添加 删除 实现 功能 错误 报错 接口 数据 用户 系统 服务 函数
变量 项目 运行 执行 启动 配置 页面 按钮 显示 解释 例子 名字 下面 重新 优化 处理 更新 新增 支持 生成 创建
打开 关闭 保存 提交 分支 版本 发布 部署 环境 本地 线上 日志 命令 参数 返回 类型 字段 列表 查询 数字 文字
时间 内容 信息 部分
"""
_WORK_PAIRS: Final = frozenset(_WORK_PAIRS_TEXT.split())

_DIGITS: Final = re.compile(r"[0-9]+")
_YEAR: Final = re.compile(r"(?:19|20)[0-9]{2}")
_SHORT_NUMBER: Final = 3  # digits
_PIECES: Final = re.compile(r"[._/-]+")
_ENDINGS: Final = ("ing", "ed", "es", "ly", "s", "er", "d")
_LEAST_BASE: Final = 3  # characters


@lru_cache(maxsize=32768)
def weight(word: str) -> float:
    """How much a token of `tokens.tokenize` tells about what a text is about: 0 (any text has it) to 1."""
    if not word.isascii():
        return _weight_of_script(word)
    if _DIGITS.fullmatch(word):
        return WORK_WEIGHT if len(word) <= _SHORT_NUMBER or _YEAR.fullmatch(word) else TELLING_WEIGHT
    if len(word) == 1 or _is_among(word, _EVERYDAY):
        return EVERYDAY_WEIGHT
    return WORK_WEIGHT if _is_among(word, _WORK) else TELLING_WEIGHT


@lru_cache(maxsize=32768)
def stem(word: str) -> str:
    """The word without its ending, so that `retries` and `retry`, `gauges` and `gauge` are one. English only.

    It makes no words, only equal strings; a token with a joiner, or in another script, is itself.
    """
    if not word.isascii() or len(pieces(word)) > 1:
        return word
    for ending in ("ing", "ied", "ies", "ed", "es", "ly", "s"):
        base = word.removesuffix(ending)
        if base == word or len(base) < _LEAST_BASE or (ending == "s" and base[-1] == "s"):
            continue
        if ending in ("ied", "ies"):
            return base + "y"
        if ending in ("ing", "ed") and base[-1] == base[-2] and base[-1] not in "ls":
            base = base[:-1]
        return base.rstrip("e") if len(base) > _LEAST_BASE else base
    return word.rstrip("e") if len(word) > _LEAST_BASE + 1 else word


@lru_cache(maxsize=32768)
def pieces(word: str) -> tuple[str, ...]:
    """What a path, a URL or an identifier is joined of: `planner/clearance.py` gives planner, clearance and py."""
    return tuple(piece for piece in _PIECES.split(word) if piece) or (word,)


def _weight_of_script(word: str) -> float:
    if word in _EVERYDAY or word in _EVERYDAY_PAIRS:
        return EVERYDAY_WEIGHT
    if word in _WORK_PAIRS:
        return WORK_WEIGHT
    if "\u3400" <= word[0] <= "\u9fff":
        return EVERYDAY_WEIGHT if len(word) == 1 or not _GRAMMAR.isdisjoint(word) else TELLING_WEIGHT
    # Hiragana writes the grammar of Japanese, its nouns stand in Han and Katakana.
    return WORK_WEIGHT if all("\u3041" <= char <= "\u309f" for char in word) else TELLING_WEIGHT


def _is_among(word: str, words: frozenset[str]) -> bool:
    """Whether the words hold it, or what is left of it without a usual ending."""
    return word in words or any(base in words for base in _bases(word))


def _bases(word: str) -> list[str]:
    found = []
    for ending in _ENDINGS:
        base = word.removesuffix(ending)
        if base == word or len(base) < _LEAST_BASE:
            continue
        found += [base, base + "e"]
        if len(base) > _LEAST_BASE and base[-1] == base[-2]:
            found.append(base[:-1])
        if base[-1] == "i":
            found.append(base[:-1] + "y")
    return found
