import { defineErrors } from './table.ts';

/** Commands that use a running server, and edges. */
export const SERVER_ERRORS = defineErrors({
  UNAUTHENTICATED: {
    status: 401,
    meaning: 'There is no API key, or the server does not accept it.',
    causes: [
      '`SVC_API_KEY` is not set, or is that of another server',
      'the key was deleted, disabled or rotated, or has expired',
    ],
    remedy:
      'Run `svc-api login --server <url>`, or set `SVC_API_KEY` to a key of that server. Whoever has its key store can ' +
      'create one, and see why a key is refused: `svc-api apikey verify -`, with the secret on stdin.',
  },
  RATE_LIMITED: {
    status: 429,
    meaning:
      'A limit of the key is used up, or there were too many failed credentials. Over HTTP, Retry-After has the seconds to wait.',
    causes: ['a limit of the key is used up', 'there were many requests with wrong keys from this address'],
    remedy: 'Wait as long as the error says, and run the command again.',
  },
  BUDGET_SPENT: {
    status: 429,
    meaning: 'The key has no budget or use left. Waiting does not help.',
    causes: ['it was created with `--budget` or `--uses`, and has used that up'],
    remedy: 'Use another key, or have its budget raised: `svc-api apikey update <name> --budget <number>`.',
  },
  CREDENTIALS_INVALID: {
    meaning: 'The key for a server cannot be read or kept.',
    causes: [
      '`SVC_API_KEY` holds more than a key, such as several lines',
      'the file of a kept key can be read by other users, or was changed',
    ],
    remedy: 'Follow the error. A key that others may have read is to be deleted.',
  },
  SERVER_UNREACHABLE: {
    meaning: 'The server gave no answer. After a change it may be made all the same; the error says so.',
    causes: [
      'the address is wrong, or the server is down',
      'its certificate is not trusted here, or is for another name',
      'a firewall is in between',
    ],
    remedy: 'Check `--server` and `SVC_API_SERVER`. `NODE_EXTRA_CA_CERTS` names a file with certificates to trust.',
  },
  SERVER_INCOMPATIBLE: {
    meaning: 'What answered is not a server of svc-api, or one of another version.',
    causes: [
      'the address is that of another program, or of a proxy that answers by itself',
      'the address redirects: a key is not sent on',
      'the server is older than this program',
    ],
    remedy: 'Check the address. Use the same version on both sides, or update the older one.',
  },
  SERVER_INSECURE: {
    exit: 2,
    meaning: 'The key would cross a network unencrypted. Nothing was sent.',
    causes: ['the address begins with `http:` and is not on this machine'],
    remedy: 'Use `https:`. Where the network itself is encrypted, pass `--insecure`.',
  },
  SERVER_FAILED: {
    meaning: 'The server could not do it; the error has its reason.',
    causes: ['its key store does not answer', 'the request costs more than one may', 'it is about to end'],
    remedy: "Try again. If it stays, look into the server's log, by the request id in the error.",
  },
  STORE_REQUIRED: {
    exit: 2,
    meaning: 'The command works on the key store itself, and a server was named.',
    causes: ['`--server` or `SVC_API_SERVER` is set'],
    remedy: 'Run it where the store is, without these.',
  },
});
