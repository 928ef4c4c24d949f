// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package text

import (
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
)

func TestDecode(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"valid", "a é 中 😀", "a é 中 😀"},
		{"empty", "", ""},
		{"lone byte", "caf\xe9", "caf\ufffd"},
		{"in the middle", "a\xffb", "a\ufffdb"},
		{"three lone bytes", "\xff\xfe\xfd", "\ufffd\ufffd\ufffd"},
		{"cut character is one part", "a\xf0\x9f\x98", "a\ufffd"},
		{"cut character before another", "\xe4\xb8A", "\ufffdA"},
		{"overlong form", "\xc0\xaf", "\ufffd\ufffd"},
		{"overlong form of three", "\xe0\x80\xaf", "\ufffd\ufffd\ufffd"},
		{"surrogate", "\xed\xa0\x80", "\ufffd\ufffd\ufffd"},
		{"above Unicode", "\xf4\x90\x80\x80", "\ufffd\ufffd\ufffd\ufffd"},
		{"table of the standard", "\x61\xf1\x80\x80\xe1\x80\xc2\x62\x80\x63\x80\xbf\x64", "a\ufffd\ufffd\ufffdb\ufffdc\ufffd\ufffdd"},
		{"half a letter each", "A\xc3", "A\ufffd"},
		{"real replacement character", "\ufffd", "\ufffd"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := Decode([]byte(tt.in)); got != tt.want {
				t.Errorf("Decode(%q) = %q, want %q", tt.in, got, tt.want)
			}
		})
	}
}

// guessed decodes bytes by the encoding that Guess finds, and returns its name.
func guessed(in string) (text, encoding string) {
	if e := Guess([]byte(in)); e != nil {
		return e.Decode([]byte(in)), e.Name
	}
	return Decode([]byte(in)), ""
}

func TestGuess(t *testing.T) {
	for _, tt := range []struct{ name, in, want, encoding string }{
		{"row 21: cp1251", "\xef\xf0\xe8\xec\xe5\xf0", "пример", "windows-1251"},
		{"row 22: cp866", "\xaf\xe0\xa8\xac\xa5\xe0", "пример", "IBM866"},
		{"row 23: windows-1252 punctuation", "\x93\x94 test \x96 dash", "“” test – dash", "windows-1252"},
		{"row 24: Latin", "caf\xe9", "café", "windows-1252"},
		{"row 25: nothing fits", "\xff\xfe\xfd", "\ufffd\ufffd\ufffd", ""},
		{"row 26: stray byte", "a\xffb", "aÿb", "windows-1252"},
		{"row 27: valid UTF-8 is never guessed", "пример caf\u00e9", "пример café", ""},
		{"row 28: capitals in cp866", "\x8f\x90\x88", "ПРИ", "IBM866"},
		{"quoted words", "\x93foo\x94 and \x93bar\x94, don\x92t", "“foo” and “bar”, don’t", "windows-1252"},
		{"marks in the place of IBM866 capitals", "\x92\x91 was it", "’‘ was it", "windows-1252"},
		{"IBM866 capitals without an ASCII letter", "\x92\x91 1", "ТС 1", "IBM866"},
		{"quote at the end", "said \x94", "said \ufffd", ""},
		{"only dashes of IBM866 capitals", "test \x97 \x96", "test — –", "windows-1252"},
		{"DOS Western", "h\x94ren, fr\x81h, caf\x82", "hören, früh, café", "IBM850"},
		{"UTF-8 cut at its end", "日本\xe8", "日本\ufffd", ""},
		{"UTF-8 with one bad byte", "naïve \xff café", "naïve \ufffd café", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got, encoding := guessed(tt.in); got != tt.want || encoding != tt.encoding {
				t.Errorf("%q is read as %q (%s), want %q (%s)", tt.in, got, encoding, tt.want, tt.encoding)
			}
		})
	}
}

// TestGuessSentences encodes what a program can print and reads it back.
func TestGuessSentences(t *testing.T) {
	russian := []string{"привет", "Привет, мир!", "ошибка: файл не найден", "ОШИБКА ДОСТУПА",
		"Скомпилировано за 3.5 секунды", "объект создан"}
	for _, tt := range []struct {
		name  string
		table *charmap.Charmap
		texts []string
	}{
		{"windows-1251", charmap.Windows1251, append(russian, "не могу открыть «отчёт.txt» — нет такого файла", "Помилка: файл не знайдено", "да", "Нет", "test: сбой")},
		{"IBM866", charmap.CodePage866, russian},
		{"KOI8-R", charmap.KOI8R, russian},
		{"windows-1252", charmap.Windows1252, []string{
			"d\u00e9j\u00e0 vu", "Datei nicht gefunden: größe.txt", "Fehler: ungültige Eingabe für „Straße“",
			"não foi possível abrir o arquivo",
			"Impossible d’ouvrir le fichier : accès refusé", "el año pasado, señor", "smörgåsbord på svenska",
			"50 € – 3 £", "il va à Paris", "50 à 60", "på Åland", "Ñandú", "coûté", "naïve façade",
		}},
		{"windows-1250", charmap.Windows1250, []string{"może być, że plik nie został znaleziony", "żółty", "Chyba: soubor nebyl nalezen, žádná paměť"}},
		{"windows-1253", charmap.Windows1253, []string{"Καλημέρα κόσμε", "το αρχείο δεν βρέθηκε", "παράδειγμα"}},
		{"windows-1254", charmap.Windows1254, []string{"değişiklik yapılamadı", "dosya bulunamadı: şifre yanlış"}},
		{"windows-1255", charmap.Windows1255, []string{"שלום עולם", "הקובץ לא נמצא"}},
		{"IBM850", charmap.CodePage850, []string{"Größe der Datei geändert", "accès refusé à l'élève"}},
	} {
		for _, want := range tt.texts {
			t.Run(tt.name+"/"+want, func(t *testing.T) {
				raw, err := tt.table.NewEncoder().Bytes([]byte(want))
				if err != nil {
					t.Fatal(err)
				}
				if got, encoding := guessed(string(raw)); got != want {
					t.Errorf("% x is read as %q (%s), want %q", raw, got, encoding, want)
				}
			})
		}
	}
}

func TestGuessLongOutput(t *testing.T) {
	raw := strings.Repeat("plain ascii line\n", 10000) + strings.Repeat("\xef\xf0\xe8\xec\xe5\xf0\n", 20000)
	want := strings.Repeat("plain ascii line\n", 10000) + strings.Repeat("пример\n", 20000)
	if got, encoding := guessed(raw); got != want {
		t.Errorf("a long output is read as %q", encoding)
	}
}

func TestSplitter(t *testing.T) {
	for _, tt := range []struct {
		name   string
		chunks []string
		want   []string // one per chunk, then what Flush returns
	}{
		{"whole", []string{"ab", "é"}, []string{"ab", "é", ""}},
		{"two halves", []string{"A\xc3", "\xa9B"}, []string{"A", "éB", ""}},
		{"byte by byte", []string{"\xf0", "\x9f", "\x98", "\x80"}, []string{"", "", "", "😀", ""}},
		{"cut at the end", []string{"a\xe4\xb8"}, []string{"a", "\xe4\xb8"}},
		{"not a character after all", []string{"\xe4\xb8", "A"}, []string{"", "\xe4\xb8A", ""}},
		{"held again", []string{"\xc3", "\xa9\xc3", "\xa8"}, []string{"", "é", "è", ""}},
		{"hopeless bytes do not wait", []string{"\xff", "\xed\xa0", "\x80"}, []string{"\xff", "\xed\xa0", "\x80", ""}},
		{"empty chunks", []string{"", "\xc3", "", "\xa9"}, []string{"", "", "", "é", ""}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var s Splitter
			for i, c := range tt.chunks {
				if got := string(s.Push([]byte(c))); got != tt.want[i] {
					t.Errorf("chunk %d: %q, want %q", i, got, tt.want[i])
				}
			}
			if got := string(s.Flush()); got != tt.want[len(tt.chunks)] {
				t.Errorf("Flush: %q, want %q", got, tt.want[len(tt.chunks)])
			}
			if got := s.Flush(); got != nil {
				t.Errorf("second Flush: %q", got)
			}
		})
	}
}

func FuzzSplitter(f *testing.F) {
	f.Add([]byte("A\xc3\xa9B\xf0\x9f\x98\x80\xff\xe4\xb8"), []byte{2, 1, 1, 3})
	f.Add([]byte("\xed\xa0\x80\xf4\x90\x80\x80"), []byte{1})
	f.Fuzz(func(t *testing.T, in, sizes []byte) {
		var s Splitter
		var joined, decoded strings.Builder
		take := func(p []byte) {
			joined.Write(p)
			decoded.WriteString(Decode(p))
		}
		rest := in
		for _, n := range sizes {
			k := min(int(n), len(rest))
			take(s.Push(rest[:k]))
			if s.n > 3 {
				t.Fatalf("%d bytes held back", s.n)
			}
			rest = rest[k:]
		}
		take(s.Push(rest))
		take(s.Flush())
		if joined.String() != string(in) {
			t.Fatalf("bytes %q became %q", in, joined.String())
		}
		if want := Decode(in); decoded.String() != want {
			t.Fatalf("decoded by chunk %q, at once %q", decoded.String(), want)
		}
	})
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte("\xef\xf0\xe8\xec\xe5\xf0"))
	f.Add([]byte("a\xffb\x93\x94"))
	f.Fuzz(func(t *testing.T, in []byte) {
		text, _ := guessed(string(in))
		for _, got := range []string{Decode(in), text} {
			if !utf8.ValidString(got) {
				t.Fatalf("%q decodes to %q, which is not UTF-8", in, got)
			}
			if utf8.Valid(in) && got != string(in) {
				t.Fatalf("valid %q changed to %q", in, got)
			}
		}
		// The standard library is a second opinion on what is valid.
		if got, want := strings.Contains(Decode(in), "\ufffd"),
			strings.Contains(strings.ToValidUTF8(string(in), "\ufffd"), "\ufffd"); got != want {
			t.Fatalf("%q: replaced %v, want %v", in, got, want)
		}
	})
}

func TestWhole(t *testing.T) {
	for _, tt := range []struct{ head, tail, wantHead, wantTail string }{
		{"ab", "cd", "ab", "cd"},
		{"a\xe4\xb8", "\x96b", "a", "b"},
		{"a\xf0\x9f\x98", "\x80b", "a", "b"},
		{"a\xff", "\x80\x80\x80\x80", "a\xff", "\x80"},
		{"", "", "", ""},
	} {
		if head, tail := Whole([]byte(tt.head), []byte(tt.tail)); string(head) != tt.wantHead ||
			string(tail) != tt.wantTail {
			t.Errorf("%q and %q: %q and %q", tt.head, tt.tail, head, tail)
		}
	}
}
