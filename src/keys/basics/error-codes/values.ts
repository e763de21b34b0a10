import { defineErrors } from './table.ts';

/** Values that break a rule. Nothing was changed. */
export const VALUE_ERRORS = defineErrors({
  USAGE: {
    exit: 2,
    meaning: 'The command does not exist, or its flags or arguments are wrong.',
    causes: [
      'a command or flag is misspelled, or belongs to another command',
      'a flag lacks its value, is given twice, or excludes another one',
      'a value is missing, and svc-api cannot ask for it, because there is no terminal, or because of `--json` or `--no-input`',
      'a value with spaces is not in quotes',
      'an environment variable, such as `LOG_LEVEL`, has an unknown value',
    ],
    remedy: 'The error shows the usage of the command. Add `--help` to the command to see what each flag does.',
  },
  NAME_INVALID: {
    exit: 2,
    graphql: true,
    meaning: 'The name of the key is invalid.',
    causes: [
      'it has characters other than letters, digits and spaces, such as `-` or `_`. The error names them',
      'it is empty, or longer than 100 characters',
      'it has no visible letter or digit',
    ],
    remedy: 'Choose another name, such as `CI deploy` for `ci-deploy`.',
  },
  DESCRIPTION_INVALID: {
    exit: 2,
    graphql: true,
    meaning: 'The description of the key is invalid.',
    causes: [
      'it is longer than 1,000 characters',
      'it has control characters, such as line breaks',
      'it contains what looks like a secret',
    ],
    remedy: 'Shorten it, write it in one line, or leave the secret out.',
  },
  OWNER_INVALID: {
    exit: 2,
    graphql: true,
    meaning: 'The owner of the key is invalid.',
    causes: ['it is longer than 200 characters, or has several lines', 'it contains what looks like a secret'],
    remedy: 'Write the person or team in one line, such as `Payments team`.',
  },
  TAG_INVALID: {
    exit: 2,
    graphql: true,
    meaning: 'A tag of the key is invalid.',
    causes: [
      'it is not of the form `key=value`, or one of the two is empty or too long',
      'the key of the tag has characters other than letters, digits and `.` `_` `-` `/`, or the value has a comma',
      'two tags have the same key, or there are more than 16 tags',
    ],
    remedy: 'Write each tag as `key=value`, such as `env=prod`. Use each key once.',
  },
  ROLE_INVALID: {
    exit: 2,
    graphql: true,
    meaning: 'The role does not exist.',
    causes: ['it is misspelled', 'an item of the list is empty, as in `VIEWER,,GUEST`'],
    remedy:
      'The roles are ADMIN, CONNECT, VIEWER and GUEST, in any case, and those of [`svc-api.yaml`](configuration.md).',
  },
  PERMISSION_INVALID: {
    exit: 2,
    graphql: true,
    meaning: 'The permission does not exist.',
    causes: [
      'the resource or the action is misspelled, or one of them is missing',
      'the resource belongs to a CLI that has svc-api as a plugin, and the command runs in another program',
      'it is declared in a `svc-api.yaml` that this command does not read',
      'an item of the list is empty',
    ],
    remedy: 'Write it as RESOURCE:ACTION, such as `GRAFANA:READ_ANY`. The error suggests similar ones.',
  },
  NO_GRANTS: {
    exit: 2,
    graphql: true,
    meaning: 'A key needs at least one role or permission.',
    causes: ['neither `--roles` nor `--permissions` is given', 'an update would remove the last one'],
    remedy: 'Pass `--roles`, `--permissions` or both. To stop a key from working, disable it.',
    remedyIn: { flags: 'Pass --roles, --permissions or both.' },
  },
  EXPIRY_INVALID: {
    exit: 2,
    graphql: true,
    meaning: 'An expiry or a duration is malformed or out of range.',
    causes: [
      'the duration has no unit, or one that does not exist: `1M` is not a month',
      'the date is not in RFC 3339 format, or lacks its time zone',
      'it is in the past, or more than ten years away',
      'a duration and a date are both given',
    ],
    remedy: 'Write `90m`, `12h`, `30d` or `4w`, or a date such as `2027-01-31T12:00:00Z`.',
  },
  LIMIT_INVALID: {
    exit: 2,
    graphql: true,
    meaning: 'A limit of requests is malformed or out of range.',
    causes: [
      'it has no unit, or one that does not exist: `100/M` is not a limit a month',
      'it is 0, or more than 10,000 requests a second',
      'two limits have the same unit',
    ],
    remedy: 'Write a number and s, m, h, d or month, such as `100/m`, and each unit once.',
  },
  NETWORK_INVALID: {
    exit: 2,
    graphql: true,
    meaning: 'A network that a key can be used from is malformed or ambiguous.',
    causes: [
      'it is not an IPv4 or IPv6 address, with or without a prefix length',
      'it has bits beyond its prefix, such as `10.1.2.3/8`',
      'the list is empty, or has more than 100 networks',
    ],
    remedy: 'Write `10.0.0.0/8`, `2001:db8::/32` or a single address. The error suggests a correction.',
  },
  SECRET_INVALID: {
    exit: 2,
    meaning: 'The secret of a key to import cannot be used.',
    causes: [
      'it has the form of a secret of svc-api, but a wrong checksum: it was mistyped',
      'it has spaces or characters beyond ASCII, or is longer than 8,000 characters',
      'its SHA-256 is not written in hex, base64 or base64url',
      'the prefix belongs to another secret',
    ],
    remedy: 'Copy the secret again from its source, or import its SHA-256 instead.',
  },
  INPUT_INVALID: {
    exit: 2,
    graphql: true,
    meaning: 'A file, a cursor or another value cannot be read, or is out of range.',
    causes: [
      'a path is wrong, or this user cannot read the file',
      'a number is malformed or too large',
      'a time is neither a date nor an age',
      'a line to import is not a JSON object, or has unknown fields',
    ],
    remedy: 'The error names the value, and what is expected.',
  },
});
