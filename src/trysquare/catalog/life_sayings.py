"""Life sayings: how people speak about what other tools do: homes, music, travel, health, shops, machines and more.

Where there is such a tool, these words lead to it. Where there is none, they tell that nothing fits, which a word that
is not known at all cannot tell: it may be a mere name.
"""

from __future__ import annotations

LIFE_SAYINGS: tuple[tuple[str, str], ...] = (
    # Homes and things in them
    ("lamp lights light bulb dim brighten switch_on switch_off turn_on socket", "light|lamp|switch|brightness"),
    ("thermostat radiator boiler air_conditioning central_heating turn_up_the_heat turn_down_the_heat",
     "thermostat|heating"),
    ("blinds curtains shutter shutters lock_the unlock doorbell alarm_system burglar front_door garage_door gate",
     "blind|door|lock|alarm|home"),
    ("vacuum hoover mop dishwasher washing_machine tumble dryer fridge freezer oven kettle stove toaster microwave"
     " robot appliance iron_my fold",
     "appliance|vacuum|robot|oven|washer"),
    ("water_the_plants watering lawn plants plant weeds hedge fertiliser seeds gardener garden",
     "garden|plant|irrigation"),
    ("plumber electrician handyman leaking tap repair mend fix_my screw drill furniture assemble wallpaper paint"
     " painter carpenter renovate roof",
     "repair|craftsman|maintenance"),
    ("clean_the clean_my dust_the cleaner babysitter nanny feed feed_the walk_the_dog pet cat dog puppy kitten hamster",
     "cleaning|sitter|pet"),
    # Sounds, pictures and films
    ("play music song jazz playlist album singer rock classical band radio podcast audiobook loudspeaker speaker"
     " volume louder quieter tune_in lullaby melody hum vinyl spotify guitar piano violin chord",
     "music|song|playlist|melody"),
    ("film movie series episode netflix tv television watch channel_five subtitles trailer stream documentary cartoon"
     " video videos clip footage",
     "movie|film|video|television"),
    ("selfie camera image_of portrait painting drawing draw paint_a sketch_of illustrate illustration"
     " logo_for wallpaper_for crop brighten_the retouch red_eyes blur sharpen collage album_of poster meme",
     "image|photo|picture|drawing"),
    ("aloud read_aloud read_out voice pronounce accent dictate dictation speech_to recording record transcribe"
     " transcription microphone sing speak_this say_out",
     "speech|voice|transcription"),
    ("animate animation three_dimensional 3d sculpture render model_of", "animation|render|sculpture"),
    # Travel
    ("flight flights fly plane airline boarding airfare airplane aeroplane boarding_pass layover luggage baggage"
     " suitcase check_me_in seat window_seat aisle",
     "flight|airline|airport|boarding"),
    ("hotel hostel room_with double_room bed_and airbnb accommodation holiday_home overnight nights apartment cabin"
     " suite sea_view",
     "hotel|accommodation|stay"),
    ("rent hire taxi cab uber lift_to rent_a rental train_ticket bus_ticket ferry_ticket railcard season_ticket"
     " scooter car_hire",
     "taxi|rental|ride|fare"),
    ("visa passport embassy customs vaccination_for cruise package_tour holiday_in trip_to tour_of honeymoon_in",
     "visa|tour|passport|cruise"),
    ("tickets tickets_for seats opera concert festival musical theatre_tickets cinema_tickets box_office",
     "ticketing|theatre|concert|admission"),
    # Food, shops and deliveries
    ("order pizza takeaway take_away delivery deliver_food groceries milk bread eggs butter beer wine order_a order_me"
     " order_some burger_to",
     "delivery|food|grocery|takeaway"),
    ("recipe_for cook cooking bake baking cake soup dish ingredients calories nutrition diet",
     "recipe|cooking|nutrition"),
    ("buy buy_me purchase_a shoes dress trousers shirt sofa gift present flowers bouquet toy second_hand auction ebay",
     "cart|purchase|buy|basket"),
    ("parcel package shipment courier tracking_number postage stamp letterbox ship_the deliver_the",
     "parcel|shipment|tracking"),
    ("book_a_table reservation book_us", "reservation|booking"),
    ("book reserve", "reservation|booking"),
    # Body and mind
    ("headache fever cough pain ache flu medicine pill pills tablet tablets prescription symptom symptoms diagnose"
     " diagnosis vaccine injection blood pressure_is pulse heart_rate sleep slept weight lose_weight steps workout"
     " exercise push_ups yoga meditate meditation massage",
     "medical|medicine|fitness|symptom"),
    ("haircut_at tattoo manicure makeup perfume hairstyle", "beauty|salon"),
    ("game chess sudoku puzzle crossword quiz riddle joke funny dice toss_a_coin cards poker lottery bet casino score"
     " goals league football tennis match championship olympics team_won",
     "game|sport|joke|league"),
    ("horoscope star_sign dream fortune tarot love_poem rhyme haiku limerick fairy_tale bedtime_story invent_a_story"
     " tell_me_a_story story",
     "story|poem|horoscope|rhyme"),
    ("the_news news_today latest_news in_the_news world_news"
     " headline headlines newspaper election politics president minister",
     "headline|journalism|news"),
    # Words and numbers
    ("translate translation french german spanish italian japanese chinese russian latin into_english into_french"
     " into_german in_spanish",
     "translate|translation|language"),
    ("summarise summarize summary shorten_this paraphrase proofread grammar synonym synonyms rhymes define dictionary"
     " thesaurus",
     "summarize|grammar|dictionary|proofread"),
    ("calculate sum multiply divided_by times plus minus square_root equation solve integral derivative squared cubed"
     " prime percent_of logarithm maths math algebra geometry factorial fraction",
     "math|equation|arithmetic|calculator"),
    ("exchange_rate currency_into euros_in dollars_in convert_dollars convert_euros stock stocks shares share_price"
     " bitcoin crypto invest investment mortgage loan credit interest_rate pension tax tax_return taxes insurance_claim"
     " insure bank_transfer transfer_money wire",
     "stock|exchange|bank|tax|loan|investment"),
    ("inches convert kilos ounces gallons celsius_to fahrenheit_to pounds_to_kilos unit_conversion",
     "conversion|converter"),
    ("neural machine machine_learning train_a train_the classify classifier predict prediction forecast_sales"
     " cluster_the regression_model embedding fine_tune",
     "training|model|prediction|classify"),
    # Machines
    ("phone telephone ring dial call_my call_me phone_call voicemail on_the_phone text_message sms whatsapp ringtone"
     " call_somebody_on sim",
     "dial|call|sms|voice"),
    ("printer print_out print_the print_this print_three scan scanner scan_the fax photocopy photocopier qr barcode"
     " ocr toner",
     "printer|scan|fax|barcode"),
    ("timer stopwatch alarm wake_me countdown egg_timer alarm_clock", "timer|alarm|stopwatch"),
    ("battery brightness bluetooth wifi wi_fi router hotspot reboot restart shut_down screensaver wallpaper"
     " airplane_mode software_update antivirus virus remote_desktop vpn laptop monitor mouse headphones hard_drive"
     " format_the_disk defragment install uninstall driver drivers",
     "device|wifi|battery|reboot|install"),
    ("password passwords two_factor fingerprint encrypt decrypt encryption certificate ssl firewall hack hacker"
     " secret_key key_pair",
     "password|encrypt|certificate|secret"),
    ("kubernetes cluster docker container containers pod pods virtual_machine vm server_farm spin_up scale_up"
     " scale_the load_balancer dns domain domain_name terraform lambda s3 bucket cloud_server ssh nginx deploy"
     " deployment",
     "kubernetes|cluster|container|vm|dns"),
    ("zip compress unzip decompress tar_file rar unpack", "compress|zip|unpack"),
    ("tweet instagram tiktok snapchat linkedin follower followers hashtag social_media story_on go_viral likes_on"
     " retweet status_on_facebook",
     "social|tweet|follower"),
    ("car_wash tank tyre tyres tire tires petrol refuel charge_my_car engine oil_change mileage parking_space"
     " driving_licence drive_me_to chauffeur gearbox brake brakes",
     "vehicle|fuel|tyre"),
    # Offices that do other things
    ("sign_the_contract notary signature legal sue court divorce will_and patent trademark lawsuit legally",
     "legal|signature|contract"),
    ("job_offer vacancy vacancies cv_for hire fire_somebody payroll payslip timesheet salary_slip",
     "recruiting|payroll|vacancy"),
    ("marry date_for dating girlfriend boyfriend flirt love_letter propose_to", "dating|romance"),
    ("school_report exam_results solve_my_homework do_my_homework teach teach_me learn_to lesson_in course courses"
     " quiz_me flashcards tutor",
     "course|lesson|flashcard|quiz"),
    ("measure drone satellite telescope rocket robot_arm laser sensor solar_panel solar electricity power_meter"
     " meter_reading",
     "sensor|drone|energy|meter"),
    ("pie_chart bar_chart chart graph_of plot_the plot histogram diagram flowchart mind_map whiteboard slideshow gantt",
     "chart|plot|diagram|visualize"),
    # Deeds that few tools do, and what everybody knows
    ("sew knit iron boil fry roast grill stir dance hug kiss shave tow park_my pick_me_up drop_me vote bid gamble hack"
     " spy weld solder calibrate inflate pump refill polish sweep scrub rinse sharpen_the carve glue hammer dig"
     " climb_the jump swim_with ride_the chop peel wake lift carry hang tie",
     "manual|robot|errand"),
    ("why_is_the why_are_there why_do_we who_invented who_discovered who_was_the population_of the_history_of planet"
     " planets moon mars galaxy dinosaur dinosaurs evolution gravity atom molecule chemistry physics biology philosophy"
     " king queen emperor empire war revolution ancient medieval encyclopedia trivia_question",
     "encyclopedia|trivia|science"),
    ("rash mole tooth teeth toothache surgeon surgery hospital_bed ambulance pregnant pregnancy cancer diabetes"
     " vitamin vitamins therapist dose bandage wound",
     "medical|medicine|symptom"),
    ("notarise notarised notarize notarized attorney solicitor bail", "legal|notary"),
    ("bark purr horse cow chicken fish goldfish aquarium_fish rabbit parrot bee bees", "pet|animal|veterinary"),
    ("waltz choir_music karaoke drum drums bass trumpet remix soundtrack mp3 symphony orchestra ballet musician",
     "music|song|melody"),
    ("camera_roll webcam cctv surveillance filter_on_my hologram sticker gif emoji_art caricature watercolour"
     " cartoonist",
     "image|camera|picture"),
    ("voicemails ringing hang_up dial_the conference_call_on video_call facetime skype", "dial|call|voicemail"),
    ("firmware operating_system bios ram gpu cpu graphics_card overclock screen_brightness touchscreen keyboard_layout"
     " smartwatch tablet_computer",
     "device|firmware|hardware"),
    ("mine_some blockchain nft ethereum bitcoins dividend broker portfolio hedge savings_account overdraft"
     " credit_score",
     "stock|investment|crypto"),
    ("novel_about write_a_song write_a_poem write_a_story write_me_a make_up_a compose_a_song slogan pun",
     "story|poem|creative"),
    ("genome dna protein molecule_of simulate simulation quantum", "simulation|genome|science"),
)  # fmt: skip
