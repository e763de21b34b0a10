import { defineErrors } from '../../keys/basics/index.ts';

/** Error codes of applications that ask for keys. */
export const errors = defineErrors({
  REQUEST_DECIDED: {
    status: 409,
    graphql: true,
    meaning: 'Somebody has agreed to the request of an application already, or refused it.',
    causes: ['the command was run before', 'another person has decided'],
    remedy: 'There is nothing to do. See `svc-api apikey log` for who it was; the application can ask again.',
  },
  CONSENT_OFF: {
    status: 404,
    graphql: true,
    meaning: 'Applications may not ask for keys in that way, or not at all: `consent` in `svc-api.yaml` says so.',
    causes: [
      '`consent` is `off`, or names the other way',
      '`consent` is not there, and somebody else than `svc-api login` asks',
    ],
    remedy: 'Let them, if you want to, by [`consent`](consent.md#who-may-ask) in `svc-api.yaml` of the server.',
  },
  TOO_MANY_REQUESTS: {
    status: 429,
    graphql: true,
    meaning: 'Applications ask for keys, or codes are tried, more often than is allowed. From a server only.',
    causes: ['a client asks again and again', 'somebody guesses codes'],
    remedy: 'Wait as long as the error says.',
  },
});
