import { defineErrors } from '../../keys/basics/index.ts';

/** Error codes of the service behind guard. */
export const errors = defineErrors({
  BAD_GATEWAY: {
    exit: null,
    status: 502,
    meaning: 'The guard cannot reach the service behind it, or the service did not answer properly.',
    causes: ['the service is down, or its address is wrong', 'it closed the connection before its answer was complete'],
    remedy: "See the guard's log for the reason.",
  },
  GATEWAY_TIMEOUT: {
    exit: null,
    status: 504,
    meaning: 'The service behind the guard took too long to answer.',
    causes: ['the service is overloaded', 'the request needs a long time'],
    remedy: 'Try again later, or raise the `--timeout` of the guard.',
  },
});
