import { CHECKSUM_LENGTH, DEFAULT_PREFIX, secretPattern } from '../../../keys/secret/index.ts';

/** Tells a key from a text that looks like one by its last characters: CRC-32 of all before them, in base62. */
const check = (pattern: string) => `import re, sys, zlib
digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
found = False
for path in sys.argv[1:]:
    with open(path, "rb") as file:
        text = file.read()
    for match in re.finditer(rb"${pattern}", text):
        rest, check = zlib.crc32(match[0][:-${CHECKSUM_LENGTH}]), ""
        while len(check) < ${CHECKSUM_LENGTH}:
            rest, digit = divmod(rest, 62)
            check = digits[digit] + check
        if match[0][-${CHECKSUM_LENGTH}:] == check.encode():
            line = text.count(b"\\n", 0, match.start()) + 1
            print(f"{path}:{line}: {match[0][:-49].decode()} is an API key")
            found = True
sys.exit(found)`;

/** Rules for other scanners to find keys, each in a file format of that scanner. */
export const SCANNERS = ['gitleaks', 'trufflehog', 'pre-commit'] as const;

/** The rule of a scanner for secrets with this start, and those that begin with `svc_`. */
export function scannerRules(prefix: string): Readonly<Record<(typeof SCANNERS)[number], string>> {
  const prefixes = [...new Set([DEFAULT_PREFIX, prefix])];
  const pattern = secretPattern(prefixes);
  const starts = prefixes.map((each) => `${each}_`);
  return {
    gitleaks: `# gitleaks git --config gitleaks.toml: finds API keys of svc-api beside all that gitleaks knows.

[extend]
useDefault = true

[[rules]]
id = "svc-api-key"
description = "An API key of svc-api, which opens a service until it is disabled."
regex = '''${pattern}'''
keywords = [${starts.map((each) => `"${each}"`).join(', ')}]
`,
    trufflehog: `# trufflehog git file://. --config trufflehog.yaml: finds API keys of svc-api beside all others.

detectors:
  - name: svc-api-key
    keywords: [${starts.join(', ')}]
    regex:
      key: '${pattern}'
`,
    'pre-commit': `# pre-commit run svc-api-keys: stops a commit with an API key of svc-api, found by form and checksum.
# A part of .pre-commit-config.yaml. It needs python3, and no key store.

repos:
  - repo: local
    hooks:
      - id: svc-api-keys
        name: API keys of svc-api
        language: system
        types: [file]
        entry: |
          python3 -c '
${indented(check(pattern), 10)}
          '
`,
  };
}

function indented(text: string, by: number): string {
  return text.replaceAll(/^(?=.)/gm, ' '.repeat(by));
}
