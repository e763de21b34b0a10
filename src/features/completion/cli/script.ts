import type { Config } from '@oclif/core/interfaces';
import type { Shell } from './offer.ts';

const OWN_BIN = 'svc-api';
const TOPICS = ['apikey', 'serve'];

/** The script that makes a shell ask this program for completions. In a host, it completes only our commands. */
export function scriptOf(shell: Shell, { bin, topicSeparator }: Pick<Config, 'bin' | 'topicSeparator'>): string {
  const completed: Completed = {
    bin,
    ask: `command ${bin} apikey${topicSeparator}autocomplete ${shell} --complete`,
    prefix: `_svc_api_complete_${bin.replaceAll(/\W/g, '_')}`,
    topics: bin === OWN_BIN ? undefined : TOPICS,
  };
  return { bash: bashScript, zsh: zshScript, fish: fishScript }[shell](completed);
}

/** The script for bash, 4 or later. */
function bashScript(completed: Completed): string {
  const { bin, ask, prefix } = completed;
  return `# Completion of ${bin} for bash
${previousInBash(completed)}
${prefix}() {
${othersInBash(completed)}  local -a reply
  mapfile -t reply < <(
    COMP_LINE="\${COMP_LINE:0:COMP_POINT}" COMP_WORDBREAKS="$COMP_WORDBREAKS" ${ask} 2>/dev/null </dev/null
  )
  COMPREPLY=()
  case "\${reply[0]}" in
    files) compopt -o default ;;
    folders) compopt -o dirnames ;;
    open) compopt -o nospace ;;
  esac
  COMPREPLY=("\${reply[@]:1}")
}

complete -F ${prefix} ${bin}
`;
}

function previousInBash({ bin, prefix, topics }: Completed): string {
  if (!topics) return '';
  return `
# What completes the other commands of ${bin}.
${prefix}_others="$(complete -p ${bin} 2>/dev/null | sed -n 's/.* -F \\([^ ]*\\) .*/\\1/p')"
[[ $${prefix}_others == ${prefix} ]] && ${prefix}_others=
`;
}

function othersInBash({ prefix, topics }: Completed): string {
  if (!topics) return '';
  return `  local topic="\${COMP_WORDS[1]}"
  (( COMP_CWORD > 1 )) || topic=
  if [[ -n "$${prefix}_others" && ! "$topic" =~ ^(${topics.join('|')})(:|$) ]]; then
    "$${prefix}_others" "$@"
    return
  fi
`;
}

/** The script for zsh: to be sourced, or a file of its function path. */
function zshScript(completed: Completed): string {
  const { bin, ask, prefix } = completed;
  return `#compdef ${bin}
# Completion of ${bin} for zsh
${previousInZsh(completed)}
${prefix}() {
${othersInZsh(completed)}  local -a reply texts shown suffix
  local line word description typed="\${(j: :)words[1,CURRENT-1]} $QIPREFIX$IPREFIX$PREFIX"
  reply=("\${(@f)$(COMP_BUFFER="$LBUFFER" COMP_LINE="$typed" ${ask} 2>/dev/null </dev/null)}")
  case $reply[1] in
    files | folders)
      [[ $PREFIX == --*=* ]] && compset -P '*='
      [[ $reply[1] == files ]] && _files || _files -/
      return
      ;;
    open) suffix=(-S '') ;;
  esac
  for line in $reply[2,-1]; do
    word=\${line%%$'\\t'*} description=
    [[ $line == *$'\\t'* ]] && description="  -- \${line#*$'\\t'}"
    texts+=("$word")
    shown+=("$word$description")
  done
  (( $#texts )) && compadd "\${suffix[@]}" -l -d shown -a texts
}

if [[ $funcstack[1] == _${bin} ]]; then
  ${prefix} "$@"
else
  (( $+functions[compdef] )) || { autoload -Uz compinit; compinit }
  compdef ${prefix} ${bin}
fi
`;
}

function previousInZsh({ bin, prefix, topics }: Completed): string {
  if (!topics) return '';
  return `
# What completes the other commands of ${bin}.
[[ \${_comps[${bin}]} == ${prefix} ]] || ${prefix}_others=\${_comps[${bin}]}
`;
}

function othersInZsh({ prefix, topics }: Completed): string {
  if (!topics) return '';
  return `  if [[ -n $${prefix}_others && ( CURRENT -eq 2 || $words[2] != (${topics.join('|')})(|:*) ) ]]; then
    $${prefix}_others "$@"
    return
  fi
`;
}

/** The script for fish, 3.1 or later. */
function fishScript({ bin, ask, prefix, topics }: Completed): string {
  const condition = topics
    ? `
# Whether the line is about one of the commands that are completed here, or has no command yet.
function ${prefix}_is_ours
    set -l words (commandline -opc | string match -v -r '^\\w+=')
    test (count $words) = 1; or string match -q -r -- '^(${topics.join('|')})(:|$)' "$words[2]"
end
`
    : '';
  return `# Completion of ${bin} for fish
${condition}
function ${prefix}
    set -l reply (COMP_LINE=(commandline -cp | string collect) ${ask} 2>/dev/null </dev/null)
    switch "$reply[1]"
        case files folders
            set -l token (commandline -ct)
            set -l flag (string match -r '^--[a-z-]+=' -- $token)
            set -l typed (string replace -r '^--[a-z-]+=' '' -- $token)
            for path in (complete -C "'' $typed")
                test $reply[1] = files; or string match -q -r '/(\\t|$)' -- $path; and echo "$flag$path"
            end
        case words open
            string join -- \\n $reply[2..-1]
    end
end

complete -c ${bin} ${topics ? `-n ${prefix}_is_ours ` : ''}-f -a '(${prefix})'
`;
}

interface Completed {
  bin: string;
  /** Shell code that asks the program. */
  ask: string;
  /** A name for the functions of the script. */
  prefix: string;
  /** The commands that are completed, of a program that has others as well. */
  topics: readonly string[] | undefined;
}
