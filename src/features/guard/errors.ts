import { defineErrors } from '../../keys/basics/index.ts';

/** Error codes of the service behind guard. */
export const errors = defineErrors({
  BAD_GATEWAY: {
    exit: null,
    status: 502,
    meaning: 'From guard: the service behind it cannot be reached, or did not answer properly.',
    causes: ['the service is down, or its address is wrong', 'it ended the connection before its answer was whole'],
    remedy: 'Look into the log of guard, which has the reason.',
  },
  GATEWAY_TIMEOUT: {
    exit: null,
    status: 504,
    meaning: 'From guard: the service behind it took too long to answer.',
    causes: ['the service is overloaded', 'the request needs a long time'],
    remedy: 'Try again later, or raise the timeout of guard.',
  },
});
