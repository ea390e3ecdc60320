{# The keys in `model` that `to` does not have. It always reads all of `to`, also in runs on a sample
   and with --sample, because a key that is only missing from a sample is not a failure. #}
{% macro qbeast__test_relationships(model, column_name, to, field) %}
  {%- do adapter.qbeast_check_parent_reads_all_rows(to) -%}
  select child.from_field
  from (select {{ column_name }} as from_field from {{ model }} where {{ column_name }} is not null) child
  left anti join (
    select {{ field }} as to_field from {{ to.render() if to.render is defined else to }}
  ) parent on child.from_field = parent.to_field
{% endmacro %}
