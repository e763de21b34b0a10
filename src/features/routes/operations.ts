import { ofServer } from '../../keys/operations/index.ts';

/** The operations on routes. A server answers them by its configuration. */
export const routeOperations = {
  routes: ofServer({ needs: 'CONFIG:READ_ANY', does: 'The routes of svc-api.yaml, in their order.' }),
  explainRequest: ofServer({
    needs: 'CONFIG:READ_ANY',
    does:
      'Which route decides about a request, why others do not, and what is required. Nothing is sent. With a key, ' +
      'which also requires API_KEY:READ_ANY, or READ_OWN for its own: whether that may pass. Limits, and the addresses ' +
      'that a key may be used from, are not looked at.',
  }),
  routeKeys: ofServer({
    needs: 'CONFIG:READ_ANY',
    does:
      'The keys that a route lets pass, as far as they may be read, in the order of apiKeys. A page looks at 1000 keys ' +
      'at most: it may have fewer than asked for, even none, and others after it.',
  }),
};
