"""Everyday words: what people say, and the words that tools are described with. From left to right only.

A tool that tells the weather speaks of forecasts; whoever needs it speaks of umbrellas. Words with `_` between them
are said one after the other. Right: what it is about, `this|or that`, then what tells the one tool from the others.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cache

from trysquare.catalog.spelling import Spelling
from trysquare.catalog.words import split_words, stem

_SAID: tuple[tuple[str, str], ...] = (
    # Weather and places
    ("rain rainy snow snowy sun sunny sunshine umbrella cloud cloudy fog foggy wind windy frost freeze freezing"
     " icy hail cold hot warm chilly humid heat jacket raincoat sunscreen",
     "weather|forecast|temperature"),
    ("warning storm stormy hurricane tornado flood flooding blizzard thunderstorm heatwave avalanche",
     "alert|warning|weather"),
    ("smog pollution pollen pollutant smoke", "air|pollution quality"),
    ("on_foot walk walking drive driving cycle bike bus train tram subway underground metro ferry route journey"
     " travel way_to get_from how_do_i_get",
     "direction|route"),
    ("far how_far distance kilometre mile how_long_does_it_take", "distance|direction|route"),
    ("around_here nearby near_me near_here close_by in_the_area restaurant cafe coffee bar pub bakery"
     " supermarket shop store pharmacy chemist hospital museum cinema theatre sight eat hungry",
     "place|restaurant|venue search"),
    ("still_open open_now opening opening_hours open_today open_on_sunday close_at", "place|hour detail open"),
    ("what_time local_time clock time_difference", "zone|clock time"),
    ("height altitude above_sea sea_level", "elevation|altitude"),
    ("latitude longitude gps position whereabouts", "coordinate|location|latitude"),
    ("coordinates_of where_is address_of which_address", "geocode|coordinate|location|address"),
    ("how_high peak summit", "elevation|altitude"),
    # Calendar
    ("appointment meeting lunch dinner breakfast brunch party birthday kickoff standup interview diary agenda"
     " gathering ceremony session date get_together wedding retro catch_up",
     "event|calendar|meeting|appointment"),
    ("schedule", "event|calendar|meeting|appointment create"),
    ("reschedule postpone push_back push_my bring_forward put_off move_my shift delay later_than earlier_than",
     "event|meeting|appointment update"),
    ("availability available get_together when_could when_can suits fit_in spare_time common_time everyone_can",
     "slot|availability|busy|free attendee"),
    ("accept decline attend rsvp join_them turn_down", "invitation|invite respond"),
    ("who_comes guest participant invitee attendance", "attendee|guest|participant event"),
    ("holiday vacation leave day_off days_off sick parental off_work absent absence",
     "office|absence|vacation|leave out"),
    ("called_off cancel_the is_off take_out_of", "event|meeting|appointment delete cancel"),
    ("busy am_i_free free_on on_my_calendar on_my_agenda my_schedule have_planned planned", "event|calendar list"),
    ("arrange set_up_a_meeting set_up_a_call block_time sit_down_with see_the_doctor dentist", "event|calendar create"),
    ("skip_the cancel_my", "event|meeting|subscription cancel delete"),
    # Mail
    ("letter correspondence inbox mailbox", "email|mail|message|inbox"),
    ("write_to drop_a_line a_line let_know write_her write_him write_them", "email|mail|message send"),
    ("wrote_back written_back heard_from hear_from did_write", "message|email|mail search"),
    ("answer respond get_back_to reply_to", "reply|respond message email"),
    ("pass_on pass_along hand_on share_with", "forward message email"),
    ("not_send unsent unfinished write_up without_sending", "draft"),
    ("attached enclosed came_with enclosure", "attachment download"),
    ("newsletter automatically automatic always_go sort_my", "filter|rule label"),
    ("star flag mark unread important categorise categorize", "label|tag|flag"),
    ("spam junk advertisement phishing", "message|email|mail|spam delete filter"),
    ("tell_somebody let_somebody_know inform notify ping drop_somebody_a_line write_somebody thank",
     "message|email send post"),
    ("did_somebody_write did_somebody_answer did_somebody_reply has_somebody_written from_somebody",
     "message|email search"),
    ("unread read_later", "label|message"),
    # Files
    ("document spreadsheet readme report essay", "file|document"),
    ("folder downloads desktop", "directory|folder"),
    ("jot write_down note_down note_this save_this put_down", "file|note|document write"),
    ("typo correct paragraph misspelt replace rewrite", "edit file"),
    ("how_big how_large how_heavy how_old last_modified", "size|info file time"),
    ("where_have_i lost mislaid", "file|document search"),
    ("call_it call_the rename_it give_it_another_name", "rename|move file"),
    ("on_my_disk hard_disk disk drive on_my_computer", "file|directory"),
    ("what_is_inside what_does_it_say contents_of contents", "read|content file"),
    ("tidy put_it_into put_them_into", "move file"),
    ("subfolder folders everything_below whole_tree", "directory|tree"),
    # Databases
    ("data record records dataset figures", "database|query|sql|table row"),
    ("sign_up signed_up registered ordered_in", "query|row|database"),
    ("fields structure layout", "table|column|schema describe"),
    ("ages slow so_slow takes_long takes_forever sluggish", "query|slow explain plan"),
    ("faster quicker speed_up look_up lookup performance tune optimise optimize",
     "index|speed|performance suggest query"),
    ("backup archive_of restore_point", "backup|dump|snapshot database"),
    ("every_row all_rows", "statement|sql|table execute"),
    ("how_many_customers how_many_users how_many_orders how_many_people how_many_of average revenue sales turnover",
     "database|query|sql"),
    ("add_a_row insert new_row", "statement|sql execute"),
    ("healthy running_fine doing_fine is_it_up in_good_shape", "health|status check"),
    # Code
    ("bug ticket defect broken crash fault complaint complain tracker malfunction", "issue|bug|ticket"),
    ("shut solved resolved is_done is_fixed", "issue|bug|ticket close update"),
    ("remark in_the_ticket", "comment issue"),
    ("proposal patch merge_request", "pull request"),
    ("lgtm approve feedback_on", "review|approve pull"),
    ("into_master into_production_branch", "merge pull branch"),
    ("alter what_changed what_did_change difference", "diff|change"),
    ("source sources codebase", "code|repository search"),
    ("who_touched touched who_changed who_wrote last_changed", "commit|history"),
    ("build pipeline green red passed failing ci", "workflow|build|pipeline|ci run status"),
    ("own_copy my_own_copy", "fork|clone"),
    ("project", "repository|project"),
    ("ship go_live version changelog roll_out", "release|publish|deploy"),
    ("not_working doesn_t_work does_not_work feature_request report_a raise_a", "issue|bug|ticket create"),
    ("backlog to_do needs_fixing open_bugs", "issue|bug|ticket list"),
    ("assign reopen reassign", "issue|task update"),
    ("propose contribute submit_my my_changes", "pull|patch create request"),
    ("check_in commit_this", "commit push"),
    ("lately recently recent_changes has_happened", "commit|history list"),
    ("new_project start_a_project", "repository|project create"),
    ("tests_pass tests_fail test_run deployment", "workflow|test|deploy run"),
    # Browsers
    ("website site homepage webpage online internet_page", "page|browser|url navigate"),
    ("look_like looks_like appearance", "screenshot|snapshot page"),
    ("button press tap hit", "click|press element"),
    ("checkout enter fill_in type_in fill_out", "form|fill|type field"),
    ("pick choose tick dropdown", "select|option"),
    ("print printable", "pdf|print save"),
    ("script javascript", "console|script error"),
    ("traffic", "network request"),
    ("log_in sign_in login", "form|fill|type"),
    ("visit surf go_to_the browse", "navigate|page|browser url"),
    ("previous_page page_before", "back page"),
    # Payments
    ("money_back pay_back reimburse repay give_back overcharged", "refund payment"),
    ("bill billing owe owed unpaid not_paid paid_us paid overdue outstanding", "invoice|bill"),
    ("how_much_money money funds cash in_the_account", "balance|payment account"),
    ("plan monthly yearly membership member_fee", "subscription|plan"),
    ("no_longer_want no_longer_wants unsubscribe quit stop_paying", "subscription cancel"),
    ("discount percent percent_off voucher promotion cheaper rebate", "coupon|discount|percentage percent"),
    ("pay buy purchase donate", "payment|pay|price link"),
    ("client buyer shopper", "customer|client"),
    ("fraud contest contested chargeback", "dispute|fraud"),
    ("sell offer article merchandise", "product|price"),
    ("cost costs tariff", "price|cost"),
    ("promo promo_code reduction", "coupon|discount"),
    ("charge charged debit", "payment|charge|invoice"),
    ("raise_the_price cheap expensive", "price"),
    # Chat
    ("team everyone everybody colleagues announce announcement crew", "channel|message|post"),
    ("room group", "channel|room|group"),
    ("have_i_missed missed miss catch_up", "history|message channel latest"),
    ("react smiley heart clap", "reaction|emoji"),
    ("show_that show_everyone show_people let_people_see", "status set"),
    ("bring_into add_to_the let_in", "invite"),
    ("remind reminder", "reminder|schedule message"),
    ("colleague coworker nickname", "profile|member"),
    ("what_was_said discussion discussed conversation talked_about", "history|message|thread channel"),
    ("do_not_disturb i_am_away i_am_busy in_a_meeting at_lunch be_right_back", "status set"),
    ("phone_number job_title contact_details", "profile|contact"),
    # Memory
    ("remember take_note keep_in_mind memorise memorize bear_in_mind note_that don_t_forget",
     "memory|observation|knowledge|entity add"),
    ("brother sister mother father wife husband friend married works_for works_with related_to parent"
     " boss cousin neighbour son daughter",
     "relation|relationship"),
    ("forget", "memory|observation|entity|knowledge delete"),
    ("recall remember_about", "knowledge|memory search node"),
    ("allergic allergy favourite favorite likes hates hobby", "observation|memory|knowledge"),
)  # fmt: skip
_TIMES = (
    "today tomorrow yesterday tonight now day week weekend weekday month year morning noon afternoon evening night hour"
    " minute monday tuesday wednesday thursday friday saturday sunday january february march april june july august"
    " september october november december clock o soon late later next last moment right"
)
_FILLERS = (
    "back away again already yet still really maybe thing stuff somebody someone anybody anyone everything something"
    " anything nothing thanks ok okay well much many lot bit kind sort way good bad great nice sure quickly quick"
    " one two three four five six seven eight nine ten eleven twelve twenty thirty forty fifty hundred thousand half"
    " first second third people anymore longer instead exactly straight every everybody everyone"
)
_DEEDS = (
    "get make put take give go come look show tell keep find see know say try bring let set do have find out check read"
    " write add new open turn call run start delete remove erase create update edit change modify list search send stop"
    " cancel save store copy move convert scale record measure book order reserve rent"
)

_SHORTEST_MISSPELT = 6


@dataclass(frozen=True, kw_only=True, slots=True)
class Meant:
    """What people mean by something, in the terms of tools."""

    about: tuple[str, ...]
    """What the tool is about; any of these will do."""
    further: tuple[str, ...] = ()
    """What tells the right one among the tools that are about it."""


def said_as(words: tuple[str, ...]) -> tuple[Meant, ...]:
    """What people mean by these words, stems all; nothing where it is not known."""
    return _table().get(words, ())


def said_nearly(word: str) -> tuple[Meant, ...]:
    """What people mean by a misspelt word. A short one is rather another word: `plant` is no slip for `plan`."""
    if len(word) < _SHORTEST_MISSPELT:
        return ()
    return tuple(meant for guess in _spelling().guesses(word, count=1) for meant in said_as((guess.term,)))


def sayings() -> Collection[tuple[str, ...]]:
    """Everything that people are known to say, as stems."""
    return _table().keys()


@cache
def longest_saying() -> int:
    """How many words the longest known saying has."""
    return max(map(len, _table()))


@cache
def _table() -> dict[tuple[str, ...], tuple[Meant, ...]]:
    table: dict[tuple[str, ...], tuple[Meant, ...]] = {}
    for said, written in _SAID:
        meant = _meant(written)
        for saying in said.split():
            key = tuple(stem(word) for word in split_words(saying))
            table[key] = tuple(dict.fromkeys((*table.get(key, ()), meant)))
    return table


@cache
def _spelling() -> Spelling:
    known = Spelling()
    for words in _table():
        if len(words) == 1:
            known.add(words[0])
    return known


def _meant(written: str) -> Meant:
    about, *further = written.split()
    return Meant(about=tuple(map(stem, about.split("|"))), further=tuple(map(stem, further)))


TIMES = frozenset(map(stem, _TIMES.split()))
"""Words that say when. They are about the calendar only where nothing else is asked for."""
FILLERS = frozenset(map(stem, _FILLERS.split()))
"""Words that carry a sentence along."""
DEEDS = frozenset(map(stem, _DEEDS.split()))
"""Verbs of nearly every request: that a tool knows one says little."""
EVENTS = _meant("event|calendar|meeting|appointment list")
