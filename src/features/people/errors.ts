import { defineErrors } from '../../keys/basics/index.ts';

/** Error codes of people who sign in. */
export const errors = defineErrors({
  NOT_FOR_PEOPLE: {
    graphql: true,
    meaning:
      "The key belongs to a person who signs in. It has no secret, and it has the grants of that person's groups.",
    causes: ['a command tried to rotate, replace or declare the key of a person, or to change its grants'],
    remedy:
      'Change [`people`](console.md#people-without-a-key) in `svc-api.yaml` or the groups of that person, or disable the key.',
  },
});
