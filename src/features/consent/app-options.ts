import { list, options, readBy, required, type Rules, text, yesOrNo } from '../../keys/basics/index.ts';
import { checkClients, type Client } from './clients.ts';

/** Rules for the options that `createApp` has for applications. */
export const appOptions: Rules<{ clients?: readonly Client[] }> = {
  clients: readBy(
    checkClients,
    list(
      options<Client>({
        id: required(text),
        name: required(text),
        redirects: required(list(text)),
        refreshes: yesOrNo,
      }),
    ),
  ),
};
