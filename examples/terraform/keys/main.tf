# Keys declared in keys.yaml, beside this file: each `terraform apply` creates, renews and rotates what is due, so let a
# schedule run it. The secrets go to files, and stay out of the state. Terraform runs as the user who owns the key store,
# with svc-api in its PATH.
resource "terraform_data" "keys" {
  # What is due is known to the store alone: this asks it each time.
  triggers_replace = timestamp()

  provisioner "local-exec" {
    working_dir = path.module
    command     = "svc-api apikey apply -f keys.yaml --secrets-dir secrets"
  }
}
