// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

// The scripts ask the hidden verb and do nothing else than to show what it says.
// In bash a candidate loses its description; "=" and ":" split words there, so that
// the words of the command line are joined again first, and a candidate loses what
// stands before them.
const bashScript = `# Completion of sallyport for bash.
_sallyport() {
    local cur out kind line part
    local -a words
    COMPREPLY=()
    cur=${COMP_LINE:0:COMP_POINT}
    cur=${cur##*[[:space:]]}
    read -r -a words <<<"${COMP_LINE:0:COMP_POINT}"
    words=("${words[@]:1}")
    [[ -n $cur ]] || words+=("")
    out=$("${COMP_WORDS[0]}" __complete "${words[@]}" 2>/dev/null) || return 0
    kind=${out%%$'\n'*}
    case $kind in
    files) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- "${COMP_WORDS[COMP_CWORD]#=}") ;;
    folders) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -d -- "${COMP_WORDS[COMP_CWORD]#=}") ;;
    commands) mapfile -t COMPREPLY < <(compgen -c -- "$cur") ;;
    words)
        while IFS= read -r line; do
            line=${line%%$'\t'*}
            part=$cur
            [[ $cur == *=* && $line == *=* ]] && line=${line#*=} part=${cur#*=}
            [[ $part == *:* && $COMP_WORDBREAKS == *:* ]] && line=${line#"${part%"${part##*:}"}"}
            [[ -n $line ]] && COMPREPLY+=("$line")
        done <<<"${out#*$'\n'}"
        [[ $out == *$'\n'* ]] || COMPREPLY=()
        ;;
    esac
}
complete -F _sallyport sallyport
`

const zshScript = `#compdef sallyport
# Completion of sallyport for zsh.
_sallyport() {
    local out kind line
    local -a lines plain about
    out=$("${words[1]}" __complete "${(@)words[2,CURRENT]}" 2>/dev/null) || return 1
    lines=("${(@f)out}")
    kind=$lines[1]
    case $kind in
    files) _files ;;
    folders) _files -/ ;;
    commands) _command_names -e ;;
    words)
        for line in "${(@)lines[2,-1]}"; do
            [[ -n $line ]] || continue
            plain+=("${line%%$'\t'*}")
            about+=("${line/$'\t'/  -- }")
        done
        compadd -l -d about -a plain
        ;;
    esac
}
if [[ $funcstack[1] == _sallyport ]]; then
    _sallyport "$@"
else
    compdef _sallyport sallyport
fi
`

const fishScript = `# Completion of sallyport for fish.
function __sallyport_complete
    set -l words (commandline -opc) (commandline -ct)
    set -l out ($words[1] __complete $words[2..-1] 2>/dev/null)
    or return
    switch $out[1]
        case files
            __fish_complete_path (commandline -ct)
        case folders
            __fish_complete_directories (commandline -ct)
        case commands
            __fish_complete_command
        case words
            for line in $out[2..-1]
                echo $line
            end
    end
end
complete -c sallyport -f -a '(__sallyport_complete)'
`

const powershellScript = `# Completion of sallyport for PowerShell.
Register-ArgumentCompleter -Native -CommandName sallyport -ScriptBlock {
    param($wordToComplete, $commandAst, $cursorPosition)
    $words = @($commandAst.CommandElements | Select-Object -Skip 1 | Where-Object { $_.Extent.EndOffset -le $cursorPosition } | ForEach-Object { "$_" })
    if ($wordToComplete -eq '') { $words += '""' }
    $out = @(& $commandAst.CommandElements[0].ToString() __complete @words 2>$null)
    if ($out.Count -eq 0) { return }
    switch ($out[0]) {
        'words' {
            $out | Select-Object -Skip 1 | ForEach-Object {
                $word, $about = $_ -split "` + "`t" + `", 2
                if (-not $about) { $about = $word }
                [System.Management.Automation.CompletionResult]::new($word, $word, 'ParameterValue', $about)
            }
        }
        'commands' { Get-Command -Name "$wordToComplete*" -ErrorAction SilentlyContinue | ForEach-Object { $_.Name } }
        default { [System.Management.Automation.CompletionCompleters]::CompleteFilename($wordToComplete) }
    }
}
`
