import type { Completed } from './script.ts';

/** The script for zsh: to be sourced, or a file of its function path. */
export function zshScript({ bin, ask, prefix, topics }: Completed): string {
  const previous = topics
    ? `
# What completes the other commands of ${bin}.
[[ \${_comps[${bin}]} == ${prefix} ]] || ${prefix}_others=\${_comps[${bin}]}
`
    : '';
  const others = topics
    ? `  if [[ -n $${prefix}_others && ( CURRENT -eq 2 || $words[2] != (${topics.join('|')})(|:*) ) ]]; then
    $${prefix}_others "$@"
    return
  fi
`
    : '';
  return `#compdef ${bin}
# Completion of ${bin} for zsh
${previous}
${prefix}() {
${others}  local -a reply texts shown
  local line word description
  reply=("\${(@f)$(COMP_BUFFER="$LBUFFER" COMP_LINE="\${(j: :)words[1,CURRENT-1]} $QIPREFIX$IPREFIX$PREFIX" ${ask} 2>/dev/null </dev/null)}")
  case $reply[1] in
    files | folders)
      [[ $PREFIX == --*=* ]] && compset -P '*='
      [[ $reply[1] == files ]] && _files || _files -/
      return
      ;;
  esac
  for line in $reply[2,-1]; do
    word=\${line%%$'\\t'*} description=
    [[ $line == *$'\\t'* ]] && description="  -- \${line#*$'\\t'}"
    texts+=("$word")
    shown+=("$word$description")
  done
  local -a suffix
  [[ $reply[1] == open ]] && suffix=(-S '')
  (( $#texts )) && compadd "\${suffix[@]}" -l -d shown -a texts
}

if [[ $funcstack[1] == _${bin} ]]; then
  ${prefix} "$@"
else
  compdef ${prefix} ${bin}
fi
`;
}
