# Facts about a key, for other resources. The secret stays out of the state, which anyone who can run a plan can read.
terraform {
  required_providers {
    external = {
      source = "hashicorp/external"
    }
  }
}

data "external" "ci_deploy" {
  program = ["sh", "${path.module}/key.sh"]
  query = {
    name = "CI deploy"
  }
}

output "ci_deploy" {
  value = data.external.ci_deploy.result
}
