"""Word sayings: more single words of everyday speech, for the same things as the sayings of work."""

from __future__ import annotations

WORD_SAYINGS: tuple[tuple[str, str], ...] = (
    ("climate meteorologist raining snowing raindrop drench sunbathe sunset sunrise mist misty icicle glove anorak"
     " hoodie cardigan flipflops barefoot shade dew monsoon spell showers rained snowed cooler warmer colder hotter"
     " windproof waterproof picnics hikers ramble patio deckchair lido",
     "weather|forecast|temperature"),
    ("inundation thunder hailstorm catastrophe shelter outage", "alert|warning|severe weather"),
    ("smoggy polluted polluting sooty unhealthy fumes wildfire_smoke", "air|pollution quality"),
    ("journeys bypass itineraries crossroads lane avenue boulevard cyclist hitchhike carpool ring_road pathway trail"
     " transit shuttle railway tube",
     "direction|route|transport"),
    ("mileage_between kms km miles kilometres kilometers metres_away yards", "distance|travel"),
    ("brasserie canteen tavern deli takeout eatery noodles curry tapas breakfast_place cocktail espresso snack"
     " hangout_spot boutique stationery haberdashery salon sauna aquarium planetarium bowling swimming_pool trails"
     " viewpoint nightlife plumber_near vegan_food kosher halal",
     "place|restaurant|shop search"),
    ("opened_on open_late weekends_open closing_time closed shut_on", "place|hour open detail"),
    ("timezones utc gmt", "zone|time"),
    ("hilly sea_level_of elevation_of foothills plateau", "elevation|altitude"),
    ("calendar calendars events appointments meetings invites diaries organiser planner rendezvous obligation duty"
     " shift_on deadline deadlines talk_with presentation_on birthdays celebration feast housewarming fair exhibition"
     " premiere lunchtime teatime checkups dentist_appointment orthodontist vaccination physiotherapist paediatrician"
     " tutoring swimming_lesson choir practice training training_on club_night",
     "event|calendar|appointment|meeting"),
    ("rebook rescheduled postponed delayed brought_forward moved_to_tuesday", "event|meeting update"),
    ("cancelled", "event|meeting|subscription cancel delete"),
    ("invitation invitations invited", "invitation|invite|attendee respond"),
    ("convene gather assemble_the huddle_up", "event|slot|meeting attendee"),
    ("away_next leaves sabbaticals furlough skiing_holiday honeymooning recover recovering", "office|absence out"),
    ("correspondent recipient recipients subject mailshot circular missive reminder_mail complaint_letter"
     " application cover_note thanks_to regards",
     "email|message|mail send"),
    ("unanswered unopened answered inboxes incoming_mail", "message|inbox|mailbox search"),
    ("responses reply replying replies", "reply|respond|thread message"),
    ("forwarding forwarded onward", "forward message"),
    ("drafts drafted half_written prewrite", "draft"),
    ("enclosures attached_file ticket_pdf scan_she", "attachment download"),
    ("spammer spammers junkmail advert adverts advertising promotional subscriptions_mail nuisance pester"
     " unsolicited",
     "filter|message|spam delete"),
    ("labelled labeled tagged bookmark prioritise prioritize categorised colour", "label|tag"),
    ("papers documents textfiles chapters memoir journal thesis_file checklist inventory_list spreadsheet_of"
     " letterhead csv backup_of_the_file packing_list wishlist guest_list screenplay handbook manual leaflet"
     " draft_of_the_contract lease curriculum syllabus transcript_of",
     "file|document|text"),
    ("say_in_the stands_in inside opening_lines tail head", "file|content|line read"),
    ("scribble type_up write_a_file store_in persisting", "file|content write"),
    ("misspelling comma punctuation indent rewording cross_off tick_off_the strikeout paragraphs sentences phrase",
     "edit|file text"),
    ("directories subfolders subdirectories catalogue_of_files", "directory|folder"),
    ("renamed renaming relabel shove stash relocate_the", "move|rename file"),
    ("filename filenames misplace vanished disappeared gone_missing missing anywhere whereabout",
     "file|search pattern"),
    ("filesize sizes kilobytes megabytes gigabytes largest biggest timestamp", "file|size|info"),
    ("db sql rows tables dataset_of warehouse records_of customers_in_the_database postgres mysql sqlite",
     "database|query|table|sql"),
    ("averages totals maximum minimum summing tally headcounts demographic demographics cohort retention per_person"
     " percentage_who proportion fraction_of distribution busiest highest_sales lowest top_five top_customers"
     " top_products bestselling bought_the_most turnovers profit margin yield",
     "query|database|sql|row"),
    ("attribute field column_names datatypes typed nullable", "table|column|describe"),
    ("sluggishness slowness latency lag delay_in laggy_query", "slow|query|explain"),
    ("backups dumped snapshot_of_the_data safekeeping safeguard", "backup|dump database"),
    ("downtime replication replica deadlock healthy_is memory_usage strain", "health|database|check"),
    ("bugfix bugs_in malfunctions malfunctioning erroneous misbehaving misbehaves hangs froze frozen buggy defects"
     " incident nuisance_in user_report usability login_fails can_t_log_in not_load white_screen wobbly inconsistency",
     "issue|bug|ticket create"),
    ("tickets_open unfixed todo_items workload assigned_to_me on_my_plate", "issue|ticket list"),
    ("assignee reassigned close_the_ticket reopened wontfix relabelled", "issue|ticket update"),
    ("comments commenting commented opinion_on", "comment|issue|review"),
    ("pull_requests prs merge_requests patches submissions", "pull|request list"),
    ("merging merged mainline trunk master", "merge|branch|pull"),
    ("diffs alterations modifications changed_in", "diff|change pull"),
    ("approval approved reviewing reviewer greenlight disapprove", "review|approve pull"),
    ("subroutine algorithm constant_is api_key_in references_to occurrences occurrence usage grepping", "code|search"),
    ("committing committed pushing check_into", "commit|push file"),
    ("branches branching prototype prototyping tryout", "branch create"),
    ("commits culprit committer last_touched changelog_of", "commit|history"),
    ("forks forking forked", "fork|repository"),
    ("repositories repos repo github gitlab", "repository|repo"),
    ("pipelines builds tested continuous nightlies ci_run deployed workflows automation", "workflow|build|run status"),
    ("releases releasing published launched versions milestone_release", "release|publish tag"),
    ("websites webpages browser tab bookmark_page url_of www", "page|browser|url navigate"),
    ("clicking buttons pushbutton popups consent tickbox hamburger accordion carousel", "click|element page"),
    ("forms textfield autofill applicant enrol enroll enrolment enrollment signups_form visa_form", "form|fill|field"),
    ("typing retype", "type|text element"),
    ("dropdowns selector selecting combobox", "select|option"),
    ("keystroke hotkey spacebar", "key|press"),
    ("screenshots screencap snapshot_of_the_page visually layout_of_the_page", "screenshot|page"),
    ("uploading uploads", "upload|file"),
    ("console javascript_errors logged", "console|message page"),
    ("xhr ajax endpoints requests_made trackers tracking_scripts third_party", "network|request page"),
    ("clients shoppers purchaser patrons subscriber_list", "customer|client list"),
    ("products merch merchandise_to sku item_for_sale sells sold_in", "product|price create"),
    ("prices pricing fee_for surcharge costing", "price|product"),
    ("paylink paypal crowdfunding tipping pledge sponsor sponsors", "payment|link pay"),
    ("invoices invoiced invoicing bills billed billable freelance fee_note overdue_bills reminders_for_payment"
     " dunned",
     "invoice|bill customer"),
    ("refunds refunded refunding reimbursed reimbursement repayment overpaid overpayment double_charge"
     " double_charged complained damaged dissatisfaction",
     "refund|payment"),
    ("bankroll coffers bankrupt proceeds payout_available till liquid", "balance|account"),
    ("memberships subscribing renewals renewal instalment recurring_charge", "subscription|plan"),
    ("discounts vouchers coupons giveaway markdown freebie promotional_code twenty_percent", "coupon|discount percent"),
    ("disputes fraudulent contested_payment contests disputing", "dispute|chargeback"),
    ("channels chatroom chatrooms groupchat workspace lads gang folks troops crowd_in announcements proclaim_to"
     " teamchat",
     "channel|message post"),
    ("threads conversations discussions", "thread|history|message channel"),
    ("emojis emoji reactions hearts smileys upvote", "reaction|emoji"),
    ("missed_out catching_up gist unread_in chatlog backscroll", "history|channel message"),
    ("invitees newbies trainee intern joins joined", "invite|channel|member"),
    ("colleagues coworkers workmates workmate personnel roster directory_of_people org_chart accountants designers"
     " developers engineers",
     "user|member|profile|workspace list"),
    ("extension title_of biography contactable reachable", "profile|phone user"),
    ("statuses dnd lunching napping commuting driving_now presentation_mode", "status set"),
    ("queue_up autopost scheduled", "schedule|message later"),
    ("remembering remembered memorised memorized memories knowledge facts known", "memory|knowledge|observation|graph"),
    ("likings dislikes dislike allergies intolerant vegan_since nickname_is adores collects birthplace hometown"
     " surname maiden",
     "observation|memory|knowledge|entity add"),
    ("acquaintance acquaintances stranger organisation organization institution", "entity|knowledge|memory"),
    ("relative relatives relationship relationships spouse spouses fiance fiancee marriage marries sibling siblings"
     " ancestor connected connection kin godfather stepmother mentor subordinate supervisor",
     "relation|relationship|entity"),
    ("forgetting forgot forgotten unsay disregard obsolete stale", "memory|observation|entity|knowledge delete"),
)  # fmt: skip
