"""Scales: sets of labels that come in an order, in the languages that tables are written in. Pure data.

One scale a line, its ranks from the least to the largest, apart by ``<``; other words for a rank are apart by commas.
Words are compared without case, accents and punctuation (`bayesjpt.table.ordered_labels`). Languages: English, German,
French, Spanish, Italian, Portuguese, Dutch, Polish, Turkish. What is a scale only in some trades (free < basic < premium) is not here.
"""

from __future__ import annotations

SCALES = """
very low, vlow, lowest, extremely low < low, l, lo < below average, low medium, medium low, lower < medium, med, mid, middle, moderate, average, normal, m < above average, medium high, high medium, elevated < high, h, hi, higher < very high, vhigh, highest, extremely high < critical, extreme
none < minimal, minor < low < medium, moderate < high, major < very high < severe
absent, none < trace < mild, slight, light < moderate < severe, strong, marked < very severe, extreme < critical
extra small, tiny, very small, xsmall < small, little < medium, med, medium sized, middle, average, regular < big, large, great < very large, very big, extra large, xlarge, huge < extra extra large, giant
xxxs < xxs < xs < s < s m < m < m l < l < xl < xxl, 2xl < xxxl, 3xl < xxxxl, 4xl < 5xl < 6xl
very short < short < medium, average < tall, long < very tall, very long
narrow < medium, normal, regular < wide, broad < extra wide
light < medium < heavy < very heavy
thin < medium, normal < thick
low < normal < high
below normal < normal < above normal
decreased < unchanged, stable, same < increased
decrease < no change < increase
much worse < worse < slightly worse, somewhat worse < same, about the same, no change, unchanged < slightly better, somewhat better < better, improved < much better
negative < neutral < positive
very negative < negative < neutral, mixed < positive < very positive
never, not at all < almost never, very rarely < rarely, seldom, hardly ever < occasionally, sometimes, now and then < often, frequently, regularly < usually, mostly, very often, almost always < always
never, not at all < rarely, seldom, less than once a month < once a month, monthly, 1 3 times a month < once a week, weekly < 2 3 times a week, several times a week, a few times a week < 4 6 times a week, most days < daily, every day, once a day < several times a day, more than once a day
strong sell < sell, underperform, underweight < hold, neutral < buy, outperform, overweight < strong buy
hs, high school < some college < ba, bs, bsc, bachelor, bachelors < ma, ms, msc, mba, master, masters < phd, doctorate
daily < weekly < biweekly, fortnightly < monthly < quarterly < semiannually, half yearly < yearly, annually, annual
never < yearly < monthly < weekly < daily
never < former, past, ex < current
unacceptable, unacc, terrible, awful, very bad, very poor < bad, poor, inferior < below average, mediocre, weak < acceptable, acc, fair, average, ok, okay, satisfactory, sufficient, adequate, passable < above average < good < very good, vgood < great, excellent, superb, outstanding, exceptional < perfect
fail, failed < pass, passed, sufficient < merit, credit < distinction, honours, honors
insufficient, inadequate < needs improvement, partial < sufficient, adequate, meets expectations < good < exceeds expectations, excellent
very weak < weak < moderate, medium, average < strong < very strong
very easy < easy < medium, moderate, normal, intermediate < hard, difficult < very hard, very difficult, expert, extreme
beginner, novice, elementary < lower intermediate, pre intermediate < intermediate < upper intermediate < advanced < proficient, expert, fluent, native, master
a1 < a2 < b1 < b2 < c1 < c2
strongly disagree, disagree strongly, completely disagree, totally disagree < disagree, mostly disagree < somewhat disagree, slightly disagree < neutral, neither, neither agree nor disagree, undecided, neither agree or disagree < somewhat agree, slightly agree < agree, mostly agree < strongly agree, agree strongly, completely agree, totally agree
very dissatisfied, very unsatisfied, extremely dissatisfied < dissatisfied, unsatisfied < somewhat dissatisfied < neutral, neither, neither satisfied nor dissatisfied, neither dissatisfied nor satisfied < somewhat satisfied < satisfied < very satisfied, extremely satisfied
very unhappy < unhappy, not happy < neutral, ok < happy, pretty happy < very happy
very unlikely, extremely unlikely < unlikely < neutral, possible, even, neither likely nor unlikely < likely, probable < very likely, extremely likely < certain, almost certain
not important, unimportant, not at all important < slightly important, somewhat important < moderately important < important < very important < extremely important
not at all < a little, slightly, a little bit < somewhat, moderately < quite a bit, very, very much, a lot < extremely, completely
no, none, zero < few, a few, little, a little < some, several < many, much, a lot, lots < most < all
no < maybe, perhaps, possibly, partly, partially, undecided < yes
false < unknown, maybe < true
freezing, very cold, icy < cold < cool, chilly < mild, lukewarm, normal, temperate < warm < hot < very hot, boiling
very dark < dark < medium < light < very light
very slow < slow < medium, moderate, normal, average < fast, quick, rapid < very fast
very dry < dry < moist, damp < wet < very wet
empty < low, nearly empty < half, half full < full
mute, silent, quiet < normal, medium < loud < very loud
cheap, inexpensive < moderate, affordable, medium < expensive, pricey < very expensive, luxury
new, brand new < like new, as new < very good < good < acceptable, fair, used < poor, damaged
baby, infant, newborn < toddler < child, kid < preteen, tween < teen, teenager, adolescent, youth < young adult, young < adult, middle aged < senior, elderly, old
young < middle aged, middle, middle age < old, elderly, senior
newborn < infant < child < adolescent < adult < elderly
junior, jr, entry level, entry < mid, mid level, intermediate, regular, middle < senior, sr < lead, staff < principal < director, head < executive, c level
intern, trainee < assistant < associate < manager < senior manager < director < vice president, vp < president
freshman < sophomore < junior < senior
bronze < silver < gold < platinum < diamond
iron < bronze < silver < gold
trivial, lowest, very low < minor, low < normal, medium, moderate, average < major, high, important < urgent, very high, highest < critical, emergency, immediate, blocker
info, debug, information < notice < warning, warn < error < critical, fatal, alert < emergency
lower class, lower, working class, poor < lower middle class, lower middle < middle class, middle < upper middle class, upper middle < upper class, upper, rich
low income < lower middle income < middle income < upper middle income < high income
none, no education, no schooling, uneducated, illiterate < nursery, kindergarten < preschool < 1st 4th < primary, basic, primary school, elementary, elementary school, 5th 6th < 7th 8th, middle school, lower secondary, junior high, some high school, less than high school, less than high school diploma < 9th < 10th < 11th < 12th < secondary, secondary school, high school, highschool, hs grad, high school graduate, upper secondary, high school diploma, ged < vocational, some college, post secondary, trade school < associate, associates, assoc voc, associate degree, associates degree < assoc acdm < college, tertiary, higher, university, bachelor, bachelors, undergraduate, bachelor degree, bachelors degree, graduation, university degree, higher education < graduate, master, masters, 2n cycle, master degree, masters degree, graduate degree, postgraduate, graduate school < prof school, professional, professional degree < phd, doctorate, doctoral, doctor
early < middle, mid < late
before < during < after
dawn, early morning < morning < late morning < noon, midday < afternoon < evening < night < midnight, late night
breakfast < lunch < dinner
spring < summer < autumn, fall < winter
winter < spring < summer < autumn, fall
monday, mon, mo < tuesday, tue, tues, tu < wednesday, wed, we < thursday, thu, thur, thurs, th < friday, fri, fr < saturday, sat, sa < sunday, sun, su
january, jan < february, feb < march, mar < april, apr < may < june, jun < july, jul < august, aug < september, sep, sept < october, oct < november, nov < december, dec
q1, t1, 1st quarter, first quarter < q2, t2, 2nd quarter, second quarter < q3, t3, 3rd quarter, third quarter < q4, t4, 4th quarter, fourth quarter
calm < light, light air, light breeze < gentle, gentle breeze < moderate, moderate breeze < fresh, fresh breeze < strong, strong breeze < gale, near gale < storm < hurricane
h1, first half < h2, second half
first, 1st < second, 2nd < third, 3rd < fourth, 4th < fifth, 5th < sixth, 6th < seventh, 7th < eighth, 8th < ninth, 9th < tenth, 10th < last
zero < one < two < three < four < five < six < seven < eight < nine < ten < eleven < twelve < thirteen < fourteen < fifteen < sixteen < seventeen < eighteen < nineteen < twenty
once < twice < three times, thrice < more, many times
single < double, twin < triple < quadruple
i < ii < iii < iv < v < vi < vii < viii < ix < x < xi < xii
i < ia < ib < ic < ii < iia < iib < iic < iii < iiia < iiib < iiic < iv < iva < ivb
underweight < normal, normal weight, healthy weight < overweight < obese, obesity
primary < secondary < tertiary < quaternary
local < regional < national < international, global
village < town < city < metropolis
minimum < lower quartile < median < upper quartile < maximum
d < c < b < a < aa < aaa
d < ccc < b < bb < bbb < a < aa < aaa
f < e < d < d+ < c- < c < c+ < b- < b < b+ < a- < a < a+
sehr niedrig, sehr gering < niedrig, gering, tief < mittel, mittelmassig, durchschnittlich, normal, massig < hoch, erhoht < sehr hoch < kritisch
keine, kein, nicht vorhanden < gering, leicht, wenig < mittel, massig, mittelschwer < stark, schwer, erheblich < sehr stark, sehr schwer
sehr klein, winzig < klein < mittel, mittelgross < gross < sehr gross, riesig
sehr kurz < kurz < mittel < lang < sehr lang
jung < mittel, mittleren alters < alt
saugling < kleinkind < kind < jugendlicher, jugendliche < erwachsener, erwachsene < senior, senioren
nie, niemals, gar nicht < fast nie < selten < manchmal, gelegentlich, ab und zu < oft, haufig, regelmassig < meistens, sehr oft, sehr haufig < immer, stets
taglich < wochentlich < monatlich < vierteljahrlich, quartalsweise < halbjahrlich < jahrlich
ungenugend < mangelhaft < ausreichend < befriedigend < gut < sehr gut
nicht genugend < genugend < befriedigend < gut < sehr gut
ungenugend, sehr schlecht, mangelhaft < schlecht < ausreichend, maessig, massig < befriedigend, mittel, akzeptabel, durchschnittlich < gut < sehr gut < hervorragend, ausgezeichnet
sehr schwach < schwach < mittel < stark < sehr stark
sehr leicht, sehr einfach < leicht, einfach < mittel < schwer, schwierig < sehr schwer, sehr schwierig
stimme gar nicht zu, stimme uberhaupt nicht zu, trifft gar nicht zu, trifft uberhaupt nicht zu, trifft nicht zu < stimme nicht zu, lehne ab, stimme eher nicht zu, trifft eher nicht zu < neutral, teils teils, unentschieden, weder noch < stimme eher zu, trifft eher zu < stimme zu < stimme voll zu, stimme voll und ganz zu, stimme vollig zu, trifft zu, trifft voll zu, trifft voll und ganz zu, trifft vollig zu
sehr unzufrieden < unzufrieden < neutral, teils teils, weder noch, weder zufrieden noch unzufrieden < zufrieden < sehr zufrieden
unwahrscheinlich < moglich < wahrscheinlich < sicher
unwichtig < weniger wichtig < wichtig < sehr wichtig
keine, kein, nichts < wenige, wenig < einige, manche < viele, viel < alle, alles
nein < vielleicht, teilweise < ja
eisig, sehr kalt < kalt < kuhl < mild, lau < warm < heiss < sehr heiss
sehr langsam < langsam < mittel, normal < schnell < sehr schnell
trocken < feucht < nass
billig, gunstig, preiswert < mittel < teuer < sehr teuer
neu < neuwertig, wie neu < gut < gebraucht < defekt
ohne abschluss, kein abschluss, kein schulabschluss, keiner < grundschule, volksschule < hauptschule, hauptschulabschluss < realschule, realschulabschluss, mittlere reife < fachabitur, fachhochschulreife < abitur, gymnasium, matura, hochschulreife < lehre, ausbildung, berufsausbildung, berufsschule < meister, techniker < bachelor, fachhochschule, fachhochschulabschluss, hochschule < universitat, studium, hochschulabschluss, universitatsabschluss, master, diplom, magister < promotion, doktor
anfanger < fortgeschritten, fortgeschrittene, mittelstufe < experte, profi, experten
fruhling, fruhjahr < sommer < herbst < winter
winter < fruhling, fruhjahr < sommer < herbst
morgen, morgens, fruh < vormittag, vormittags < mittag, mittags < nachmittag, nachmittags < abend, abends < nacht, nachts
montag, mo < dienstag, di < mittwoch, mi < donnerstag, do < freitag, fr < samstag, sonnabend, sa < sonntag, so
januar, jan, janner < februar, feb < marz, mar, mrz, maerz < april, apr < mai < juni, jun < juli, jul < august, aug < september, sep, sept < oktober, okt < november, nov < dezember, dez
null < eins < zwei < drei < vier < funf < sechs < sieben < acht < neun < zehn
erste, erster, erstes < zweite, zweiter, zweites < dritte, dritter, drittes < vierte, vierter, viertes < funfte, funfter, funftes
tres bas, tres faible < bas, basse, faible < moyen, moyenne, modere, moderee, normal, normale < haut, haute, eleve, elevee, fort, forte < tres haut, tres eleve, tres elevee, tres fort, tres forte < critique
aucun, aucune, absent, absente < leger, legere, faible < modere, moderee, moyen, moyenne < severe, grave, fort, forte < tres severe, tres grave
tres petit, minuscule < petit, petite < moyen, moyenne < grand, grande, gros, grosse < tres grand, enorme
court, courte < moyen, moyenne < long, longue
jeune < adulte, moyen < age, agee, vieux, senior
bebe, nourrisson < enfant < adolescent, adolescente, ado < adulte < senior
jamais < presque jamais < rarement < parfois, quelquefois, occasionnellement, de temps en temps < souvent, frequemment, regulierement < tres souvent, presque toujours, generalement < toujours
quotidien < hebdomadaire < mensuel < trimestriel < semestriel < annuel
tres mauvais, insuffisant, tres mauvaise, nul < mauvais, mauvaise, mediocre < passable, moyen, moyenne, correct, acceptable < assez bien, assez bon < bien, bon, bonne < tres bien, tres bon, tres bonne < excellent, excellente, felicitations
avertissement < encouragements < compliments < felicitations
tres facile < facile < moyen, moyenne, modere < difficile < tres difficile
pas du tout d accord < pas d accord, plutot pas d accord < neutre, sans opinion, ni d accord ni pas d accord < plutot d accord < d accord < tout a fait d accord
tres insatisfait, pas du tout satisfait < insatisfait, peu satisfait, plutot pas satisfait < neutre, ni satisfait ni insatisfait < satisfait, plutot satisfait < tres satisfait
aucun, aucune, pas du tout < peu, un peu < assez, quelques < beaucoup < tous, tout, enormement
non < peut etre < oui
glacial, glace, tres froid < froid, froide < frais, fraiche < tiede, doux < chaud, chaude < tres chaud, brulant
tres lent < lent, lente < moyen, normal < rapide < tres rapide
debutant < intermediaire < avance, confirme < expert
sans diplome, aucun, aucun diplome < primaire, certificat d etudes < college, brevet < secondaire < cap, bep < lycee, bac, baccalaureat < bac+2, bts, dut < licence, bac+3, superieur, universite < master, maitrise, bac+5 < doctorat, bac+8
printemps < ete < automne < hiver
hiver < printemps < ete < automne
matin < midi < apres midi < soir < nuit
lundi, lun < mardi, mar < mercredi, mer < jeudi, jeu < vendredi, ven < samedi, sam < dimanche, dim
janvier, janv, jan < fevrier, fevr, fev < mars, mar < avril, avr < mai < juin < juillet, juil < aout < septembre, sept, sep < octobre, oct < novembre, nov < decembre, dec
premier, premiere < deuxieme, second, seconde < troisieme < quatrieme < cinquieme
zero < un < deux < trois < quatre < cinq < six < sept < huit < neuf < dix
muy bajo, muy baja < bajo, baja < medio, media, mediano, mediana, moderado, moderada, normal < alto, alta, elevado, elevada < muy alto, muy alta < critico, critica
ninguno, ninguna, ausente < leve, ligero, ligera < moderado, moderada < grave, severo, severa, fuerte < muy grave, muy severo
muy pequeno, muy pequena, diminuto < pequeno, pequena, chico, chica < mediano, mediana, medio < grande, gran < muy grande, enorme
corto, corta < medio, media < largo, larga
joven < adulto, adulta, mediana edad < mayor, viejo, anciano
bebe < nino, nina < adolescente < adulto, adulta < anciano, anciana, mayor
nunca, jamas < casi nunca < raramente, rara vez, pocas veces < a veces, algunas veces, ocasionalmente < a menudo, frecuentemente, muchas veces < casi siempre, generalmente < siempre
diario < semanal < quincenal < mensual < trimestral < semestral < anual
muy deficiente < insuficiente, suspenso < suficiente, aprobado < bien < notable < sobresaliente < matricula de honor
muy malo, muy mala, pesimo, insuficiente, muy mal < malo, mala, mal < regular, aceptable, suficiente, medio < bueno, buena, bien < muy bueno, muy buena, muy bien, notable < excelente, sobresaliente
muy facil < facil < medio, media, moderado, intermedio < dificil < muy dificil
totalmente en desacuerdo, muy en desacuerdo < en desacuerdo < neutral, ni de acuerdo ni en desacuerdo, indiferente < de acuerdo < totalmente de acuerdo, muy de acuerdo
muy insatisfecho < insatisfecho < neutral, indiferente, ni satisfecho ni insatisfecho < satisfecho < muy satisfecho
nada, ninguno, ninguna < poco, pocos < algo, algunos, bastante < mucho, muchos < todo, todos
no < quizas, quiza, tal vez < si
helado, muy frio < frio, fria < fresco, fresca < templado, tibio < calido, calida < caliente, caluroso < muy caliente
muy lento < lento, lenta < medio, normal < rapido, rapida < muy rapido
principiante < intermedio < avanzado < experto
sin estudios, ninguno, ninguna < primaria, primarios, educacion primaria < secundaria, secundarios, educacion secundaria < bachillerato, preparatoria < formacion profesional, tecnico < universitaria, universitario, universidad, superior, licenciatura, universitarios, grado < master, maestria, posgrado < doctorado
primavera < verano < otono < invierno
invierno < primavera < verano < otono
manana < mediodia < tarde < noche < madrugada
lunes, lun < martes, mar < miercoles, mie < jueves, jue < viernes, vie < sabado, sab < domingo, dom
enero, ene < febrero, feb < marzo, mar < abril, abr < mayo, may < junio, jun < julio, jul < agosto, ago < septiembre, setiembre, sep, sept < octubre, oct < noviembre, nov < diciembre, dic
primero, primera < segundo, segunda < tercero, tercera < cuarto, cuarta < quinto, quinta
cero < uno < dos < tres < cuatro < cinco < seis < siete < ocho < nueve < diez
molto basso, molto bassa < basso, bassa < medio, media, moderato < alto, alta < molto alto, molto alta
molto insoddisfatto, per niente soddisfatto < insoddisfatto, poco soddisfatto < neutrale, ne soddisfatto ne insoddisfatto < soddisfatto, abbastanza soddisfatto < molto soddisfatto
molto piccolo < piccolo, piccola < medio, media < grande < molto grande, enorme
mai < raramente < qualche volta, a volte < spesso < sempre
gravemente insufficiente, scarso < insufficiente, mediocre < sufficiente < discreto < buono, buona < distinto < ottimo < eccellente
pessimo < scarso, cattivo, insufficiente < sufficiente, discreto < buono, buona < ottimo, eccellente
lunedi, lun < martedi, mar < mercoledi, mer < giovedi, gio < venerdi, ven < sabato, sab < domenica, dom
gennaio, gen < febbraio, feb < marzo, mar < aprile, apr < maggio, mag < giugno, giu < luglio, lug < agosto, ago < settembre, set < ottobre, ott < novembre, nov < dicembre, dic
muito baixo, muito baixa < baixo, baixa < medio, media < alto, alta < muito alto, muito alta
muito pequeno < pequeno, pequena < medio, media < grande < muito grande
nunca < raramente < as vezes < frequentemente < sempre
segunda, segunda feira, seg < terca, terca feira, ter < quarta, quarta feira, qua < quinta, quinta feira, qui < sexta, sexta feira, sex < sabado, sab < domingo, dom
janeiro, jan < fevereiro, fev < marco, mar < abril, abr < maio, mai < junho, jun < julho, jul < agosto, ago < setembro, set < outubro, out < novembro, nov < dezembro, dez
低 < 中, 中等 < 高
小 < 中 < 大
zeer laag, heel laag < laag < gemiddeld, midden, matig, middel < hoog < zeer hoog, heel hoog
zeer klein < klein < gemiddeld, middel, middelgroot < groot < zeer groot
nooit < zelden < soms < vaak < altijd
slecht < matig, voldoende < goed < zeer goed < uitstekend
maandag, ma < dinsdag, di < woensdag, wo < donderdag, do < vrijdag, vr < zaterdag, za < zondag, zo
januari, jan < februari, feb < maart, mrt < april, apr < mei < juni, jun < juli, jul < augustus, aug < september, sep < oktober, okt < november, nov < december, dec
bardzo niski, bardzo niska, bardzo niskie < niski, niska, niskie < średni, średnia, średnie, umiarkowany < wysoki, wysoka, wysokie < bardzo wysoki, bardzo wysoka, bardzo wysokie
bardzo mały, bardzo mała, bardzo małe < mały, mała, małe < średni, średnia, średnie < duży, duża, duże < bardzo duży, bardzo duża, bardzo duże
nigdy < bardzo rzadko < rzadko < czasami, czasem < często < bardzo często, zazwyczaj < zawsze
zdecydowanie nie, zdecydowanie się nie zgadzam < raczej nie, raczej się nie zgadzam, nie zgadzam się < trudno powiedzieć, ani tak ani nie, nie mam zdania < raczej tak, raczej się zgadzam, zgadzam się < zdecydowanie tak, zdecydowanie się zgadzam
niedostateczny < dopuszczający < dostateczny < dobry < bardzo dobry < celujący
bardzo źle, bardzo zły, bardzo zła < źle, zły, zła < przeciętnie, przeciętny, przeciętna, średnio < dobrze, dobry, dobra < bardzo dobrze, bardzo dobry, bardzo dobra
podstawowe < gimnazjalne < zawodowe, zasadnicze zawodowe < średnie < wyższe
poniedziałek < wtorek < środa < czwartek < piątek < sobota < niedziela
styczeń < luty < marzec < kwiecień < maj < czerwiec < lipiec < sierpień < wrzesień < październik < listopad < grudzień
çok düşük < düşük < orta < yüksek < çok yüksek
çok küçük < küçük < orta < büyük < çok büyük
hiç, hiçbir zaman, asla < nadiren < bazen, ara sıra < sık sık, genellikle, çoğu zaman < her zaman
kesinlikle katılmıyorum, hiç katılmıyorum < katılmıyorum < kararsızım, ne katılıyorum ne katılmıyorum < katılıyorum < kesinlikle katılıyorum, tamamen katılıyorum
çok kötü < kötü < orta, vasat < iyi < çok iyi < mükemmel
ilkokul < ortaokul < lise < ön lisans < lisans, üniversite < yüksek lisans < doktora
pazartesi < salı < çarşamba < perşembe < cuma < cumartesi < pazar
ocak < şubat < mart < nisan < mayıs < haziran < temmuz < ağustos < eylül < ekim < kasım < aralık
"""

NO_ANSWERS = """
unknown, not known, not stated, not specified, unspecified, not available, n a, na, none, missing, no answer, dont know, don t know,
prefer not to say, refused, undefined, blank, unbekannt, keine angabe, k a, weiss nicht, fehlt, ohne angabe,
inconnu, inconnue, non renseigne, ne sait pas, sans reponse, desconocido, desconocida, no sabe, ns nc, no consta,
sconosciuto, non so, desconhecido, nao sei, onbekend, weet niet, geen antwoord,
nie wiem, brak danych, brak odpowiedzi, bilmiyorum, cevap yok
"""
"""Labels that say that there is no answer: they may stand beside a scale without a place on it."""

OTHERS = """
other, others, sonstige, sonstiges, andere, autre, autres, otro, otra, otros, altro, outro, anders, draw
"""
"""Answers that may stand beside a scale, too."""

RANKED = """
level, grade, stage, step, phase, rank, tier, degree, score, year, month, week, day, quarter, semester, round, floor, generation, star, stars, size,
stufe, grad, stadium, klasse, note, rang, etage, jahr, monat, woche, tag, quartal, runde, stern, sterne, pflegegrad, jahrgang, größe,
niveau, etape, degre, rang, annee, mois, semaine, jour, trimestre, etage, etoile, etoiles, taille,
nivel, etapa, grado, fase, rango, ano, mes, semana, dia, piso, estrella, estrellas, talla, taglia, maat, livello, fase, anno, giorno, niveau, graad, fase
"""
"""Words that make an order of the numbers behind (or before) them: level 1, stage II, 3 stars."""

GROUND_FLOORS = """
ground, ground floor, gf, rdc, rez de chaussee, eg, erdgeschoss, parterre, planta baja, pb, bajo, piano terra, pt, bg, begane grond
"""
"""The floor below the first one, of a house whose other floors are ordinal numbers."""

TWO_SIDED = """
yes, no, true, false, pass, passed, fail, failed, positive, negative, absent, present, increase, decrease, increased, decreased,
accept, reject, acceptable, unacceptable, never, ever, new, used, single, double, before, after, local, national, international,
none, some, all, dead, alive, day, night, min, max, minimum, maximum, ja, nein, oui, non, si, no, sim, nao, nee
"""
"""Words of two sides rather than of a scale, where a column has no third label."""
