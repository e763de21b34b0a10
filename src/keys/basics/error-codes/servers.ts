import { defineErrors } from './table.ts';

/** Commands that use a running server, and edges. */
export const SERVER_ERRORS = defineErrors({
  UNAUTHENTICATED: {
    status: 401,
    meaning: 'The API key is missing, or the server does not accept it.',
    causes: [
      '`SVC_API_KEY` is not set, or belongs to another server',
      'the key was deleted, disabled or rotated, or has expired',
    ],
    remedy:
      'Run `svc-api login --server <url>`, or set `SVC_API_KEY` to a key of that server. On the machine ' +
      'of its key store, you can create a key. `svc-api apikey verify -`, with the secret on stdin, says why a key is refused.',
  },
  RATE_LIMITED: {
    status: 429,
    meaning:
      'A limit of the key is exhausted, or there were too many failed credentials. Over HTTP, Retry-After has the seconds to wait.',
    causes: [
      'the key made more requests than its limit allows',
      'there were many requests with wrong keys from this address',
    ],
    remedy: 'Wait for the time given in the error, and run the command again.',
  },
  BUDGET_SPENT: {
    status: 429,
    meaning: 'The key has no budget or use left. Waiting does not help.',
    causes: ['the key was created with `--budget` or `--uses`, and has used all of it'],
    remedy:
      'Use another key, or ask the administrator to raise its budget: `svc-api apikey update <name> --budget <number>`.',
  },
  CREDENTIALS_INVALID: {
    meaning: 'The stored key for a server cannot be read or saved.',
    causes: [
      '`SVC_API_KEY` holds more than a key, such as several lines',
      'the file of a stored key can be read by other users, or was changed',
    ],
    remedy: 'Follow the error. Delete a key that others may have read.',
  },
  SERVER_UNREACHABLE: {
    meaning: 'The server gave no answer. If the outcome of a change is unknown, the error says so.',
    causes: [
      'the address is wrong, or the server is down',
      'its certificate is not trusted here, or is for another name',
      'a firewall blocks the connection',
    ],
    remedy:
      'Check `--server` and `SVC_API_SERVER`. To trust another certificate authority, set `NODE_EXTRA_CA_CERTS` to its file.',
  },
  SERVER_INCOMPATIBLE: {
    meaning: 'The answer did not come from svc-api, or came from an incompatible version.',
    causes: [
      'the address belongs to another program, or a proxy answered instead of the server',
      'the address redirects. svc-api does not send keys to another address',
      'the server is older than this program',
    ],
    remedy: 'Check the address. Use the same version on both sides, or update the older one.',
  },
  SERVER_INSECURE: {
    exit: 2,
    meaning: 'The key would cross a network unencrypted. Nothing was sent.',
    causes: ['the address begins with `http:` and is not on this machine'],
    remedy: 'Use `https:`. If the network itself is encrypted, pass `--insecure`.',
  },
  SERVER_FAILED: {
    meaning: 'The server failed. The error has the reason.',
    causes: ['its key store does not answer', 'the request costs too much', 'it is shutting down'],
    remedy: "Try again. If it still fails, search the server's log for the request id in the error.",
  },
  STORE_REQUIRED: {
    exit: 2,
    meaning: 'The command needs the key store itself, but a server was given.',
    causes: ['`--server` or `SVC_API_SERVER` is set'],
    remedy: 'Run the command on the machine of the store, without `--server` and `SVC_API_SERVER`.',
  },
});
