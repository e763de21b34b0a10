import { defineErrors } from '../../keys/basics/index.ts';

/** Error codes of applications that ask for keys. */
export const errors = defineErrors({
  REQUEST_DECIDED: {
    status: 409,
    graphql: true,
    meaning: 'The request of an application was already approved or denied.',
    causes: ['the command was run before', 'another person decided first'],
    remedy: 'You need to do nothing. `svc-api apikey log` shows who decided. The application can send a new request.',
  },
  CONSENT_OFF: {
    status: 404,
    graphql: true,
    meaning: 'Applications cannot request keys this way, or not at all: `consent` in `svc-api.yaml` forbids it.',
    causes: [
      '`consent` is `off`, or allows only the other way',
      '`consent` is missing, and the request is not from `svc-api login`',
    ],
    remedy: 'To allow it, set [`consent`](consent.md#who-may-ask) in `svc-api.yaml` of the server.',
  },
  TOO_MANY_REQUESTS: {
    status: 429,
    graphql: true,
    meaning:
      'Applications sent too many requests for keys, or too many codes were tried. Only servers answer with this code.',
    causes: ['a client keeps sending requests', 'someone is guessing codes'],
    remedy: 'Wait as long as the error message says, and try again.',
  },
});
