"""Words that reverse a sentence, and words that leave its meaning as it is."""

from __future__ import annotations

__all__ = ["ANTONYMS", "COMPARISONS", "ORDERS", "QUANTIFIERS", "SYNONYMS", "VERB_BASES", "pairs_of"]


def pairs_of(listed: str) -> tuple[tuple[str, str], ...]:
    """Read ``a/b,c/d``."""
    return tuple((first, second) for first, second in (pair.split("/") for pair in listed.replace("\n", "").split(",")))


ANTONYMS = pairs_of(
    "first/last,north/south,east/west,northern/southern,eastern/western,increase/decrease,increased/decreased,"
    "increases/decreases,increasing/decreasing,rose/fell,rises/falls,rising/falling,grew/shrank,gained/lost,won/lost,"
    "wins/loses,victory/defeat,high/low,male/female,men/women,son/daughter,father/mother,brother/sister,husband/wife,"
    "king/queen,large/small,long/short,best/worst,born/died,began/ended,begins/ends,joined/left,entered/left,"
    "accepted/rejected,included/excluded,includes/excludes,major/minor,public/private,old/new,rural/urban,"
    "positive/negative,success/failure,successful/unsuccessful,common/rare,opened/closed,bought/sold,summer/winter,"
    "daily/monthly,with/without,allow/prevent,allowed/forbidden,allows/prevents,permitted/prohibited,legal/illegal,"
    "approved/rejected,supported/opposed,supports/opposes,praised/criticized,positive/poor,strong/weak,hot/cold,"
    "warm/cool,dry/wet,light/dark,heavy/light,hard/soft,rich/poor,young/old,fast/slow,full/empty,deep/shallow,"
    "wide/narrow,thick/thin,active/inactive,possible/impossible,able/unable,known/unknown,popular/unpopular,"
    "important/unimportant,safe/dangerous,similar/different,same/opposite,inside/outside,inner/outer,indoor/outdoor,"
    "upper/lower,left/right,top/bottom,front/back,arrived/departed,succeeded/failed,created/destroyed,built/demolished,"
    "promoted/demoted,promoted/relegated,appointed/dismissed,hired/fired,married/divorced,remained/changed,kept/lost,"
    "found/lost,remembered/forgot,started/stopped,raised/lowered,lifted/imposed,strengthened/weakened,"
    "expanded/reduced,improved/worsened,agreed/refused,admitted/denied,acquitted/convicted,guilty/innocent,"
    "national/local,domestic/foreign,domestic/international,ancient/modern,northwest/southeast,northeast/southwest,"
    "northwestern/southeastern,northeastern/southwestern,professional/amateur,permanent/temporary,simple/complex,"
    "direct/indirect,natural/artificial,formal/informal,majority/minority,maximum/minimum,beginning/end,morning/evening,"
    "day/night,winner/loser,ally/enemy,teacher/student,parent/child,buyer/seller,attack/defence,peace/war,life/death,"
    "alive/dead,married/single,union/separation,merged/split,appeared/disappeared,returned/left,regular/irregular,"
    "dependent/independent,conservative/liberal,civil/military,vertical/horizontal,visible/invisible,solid/liquid"
)
COMPARISONS = pairs_of(
    "more/less,more/fewer,most/least,higher/lower,highest/lowest,larger/smaller,largest/smallest,bigger/smaller,"
    "longer/shorter,longest/shortest,older/younger,oldest/youngest,older/newer,oldest/newest,faster/slower,"
    "fastest/slowest,stronger/weaker,better/worse,greater/smaller,greatest/smallest,above/below,over/under,"
    "heavier/lighter,cheaper/dearer,wider/narrower,deeper/shallower,richer/poorer,taller/shorter,tallest/shortest,"
    "maximum/minimum,exceeds/falls short of"
)
ORDERS = pairs_of(
    "before/after,earlier/later,early/late,until/after,since/before,previously/subsequently,former/future,"
    "preceded/followed,preceding/following,predecessor/successor,first/finally,initially/finally"
)
QUANTIFIERS = pairs_of(
    "all/none,all/no,every/no,many/few,most/few,always/never,often/rarely,usually/rarely,usually/never,both/neither,"
    "several/no,some/no,everyone/nobody,everything/nothing,frequently/seldom,mostly/hardly,completely/partly,"
    "at least/at most,more than/fewer than,up to/at least,only one/several,twice/once"
)
"""Words of which only one can hold."""

SYNONYMS = pairs_of(
    "began/started,located/situated,known/called,due to/because of,during/in the course of,"
    "built/constructed,large/big,many/numerous,help/assist,near/close to,received/got,created/made,purchased/bought,"
    "often/frequently,usually/typically,around/about,approximately/about,released/published,children/kids,films/movies,"
    "film/movie,such as/like,several/a number of,died/passed away,consists of/is made up of,"
    "United States/US,main/primary,more than/over,show/demonstrate,ended/finished,obtained/gained,"
    "important/significant,famous/well-known,rapidly/quickly,currently/at present,formerly/in the past,"
    "throughout/all over,primarily/mainly,established/founded,established/set up,founded/set up,moved/relocated,"
    "allowed/permitted,forbidden/prohibited,attempted/tried,required/needed,chose/selected,assisted/helped,"
    "destroyed/wrecked,won/was victorious in,killed/slain,area/region,job/position,former/ex-,nearly/almost,"
    "whole/entire,however/but,although/though,because/since,buy/purchase,get/obtain,wrote/authored,"
    "produced/made,joined/became a member of,attended/went to,returned/came back,defeated/beat,remained/stayed,"
    "appeared/was seen,located in/found in,common/widespread,village/small settlement,town/small city,"
    "physician/doctor,attorney/lawyer,author/writer,actor/performer,company/firm,business/enterprise,car/automobile,"
    "road/street,war/armed conflict,movie/motion picture,each/every,within/inside,revealed/disclosed,"
    "announced/made known,appointed/named,elected/voted in as,resigned/stepped down,increased/went up,"
    "decreased/went down"
)
"""Words that can stand for each other in most sentences."""

VERB_BASES = dict(
    pairs_of(
        "became/become,began/begin,won/win,lost/lose,wrote/write,took/take,made/make,went/go,came/come,gave/give,"
        "left/leave,led/lead,held/hold,built/build,sold/sell,bought/buy,met/meet,found/find,grew/grow,rose/rise,"
        "fell/fall,ran/run,saw/see,stood/stand,taught/teach,brought/bring,fought/fight,kept/keep,paid/pay,spent/spend,"
        "sent/send,chose/choose,broke/break,spoke/speak,knew/know,flew/fly,drew/draw,got/get,began/begin,wore/wear,"
        "served/serve,received/receive,joined/join,moved/move,died/die,opened/open,closed/close,played/play,"
        "worked/work,returned/return,appeared/appear,included/include,produced/produce,released/release,"
        "published/publish,created/create,started/start,ended/end,lived/live,studied/study,married/marry,"
        "attended/attend,remained/remain,continued/continue,signed/sign,scored/score,reached/reach,used/use,"
        "introduced/introduce,established/establish,founded/found,developed/develop,designed/design,earned/earn,"
        "retired/retire,resigned/resign,defeated/defeat,featured/feature,recorded/record,performed/perform,"
        "directed/direct,toured/tour,acquired/acquire,announced/announce,entered/enter,finished/finish,formed/form,"
        "helped/help,killed/kill,represented/represent,supported/support,traveled/travel,wanted/want,called/call,"
        "visited/visit,passed/pass,purchased/purchase,competed/compete,debuted/debut,completed/complete,"
        "agreed/agree,argued/argue,allowed/allow,arrived/arrive,captured/capture,discovered/discover"
    )
)
